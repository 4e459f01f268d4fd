//! Reviews: questions about identity and access that are asked by creating an object. Nothing is
//! stored; the answer is the object with its status.

mod access;
mod rules;
mod token;
mod whoami;

use http::StatusCode;
use serde_json::{Value, json};

use super::Identity;
use crate::http::{Answer, Verb};
use crate::object::meta_mut;
use crate::status::{ApiError, Cause, Result, field};
use crate::verbs::{Call, body, ownership};

/// Answers a review.
pub(crate) fn run(call: &Call<'_>) -> Result<Answer> {
    if call.request.name.is_some() {
        return Err(ApiError::resource_not_found());
    }
    if call.request.verb != Verb::Create {
        return Err(ApiError::method_not_allowed());
    }
    let mut review = body::decode(call)?;
    ownership::record_new(call, &mut review, None);
    let answer = match call.resource.kind.as_str() {
        "SelfSubjectReview" => whoami::answer(call, &review),
        "TokenReview" => token::answer(call, review)?,
        "SelfSubjectRulesReview" => rules::answer(call, &review)?,
        _ => access::answer(call, review)?,
    };
    Ok(Answer::value(answer).with_code(StatusCode::CREATED))
}

/// A user as reviews show it.
fn user_info(who: &Identity) -> Value {
    let mut user = json!({"username": who.user});
    if !who.uid.is_empty() {
        user["uid"] = who.uid.as_str().into();
    }
    if !who.groups.is_empty() {
        user["groups"] = json!(who.groups);
    }
    if !who.extra.is_empty() {
        user["extra"] = json!(who.extra);
    }
    user
}

/// Metadata means nothing in a review, so there must be none.
fn metadata_cause(review: &mut Value, but_namespace: bool) -> Option<Cause> {
    let metadata = meta_mut(review);
    let is_known =
        |field: &str| field == "managedFields" || (but_namespace && field == "namespace");
    let strange = metadata.keys().any(|field| !is_known(field));
    let wrong = if but_namespace {
        "must be empty except for namespace"
    } else {
        "must be empty"
    };
    strange.then(|| field::invalid_shown("metadata", &crate::go::metadata_json(metadata), wrong))
}
