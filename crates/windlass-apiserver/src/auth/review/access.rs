//! `SubjectAccessReview` and its two relatives: may somebody, may I, may somebody in this namespace?

use serde_json::{Value, json};

use super::metadata_cause;
use crate::auth::{Action, Identity, ResourceAction};
use crate::object::meta;
use crate::status::{ApiError, Cause, Result, Subject, field};
use crate::verbs::{Call, place};

pub(super) fn answer(call: &Call<'_>, mut review: Value) -> Result<Value> {
    let kind = call.resource.kind.as_str();
    let is_self = kind == "SelfSubjectAccessReview";
    let is_local = kind == "LocalSubjectAccessReview";
    if is_local {
        place::put(call, &mut review)?;
    }
    let mut causes = spec_causes(&review["spec"], is_self);
    causes.extend(metadata_cause(&mut review, is_local));
    if is_local {
        causes.extend(local_causes(&review));
    }
    if !causes.is_empty() {
        // Kubernetes forgets the kind here.
        let subject = Subject {
            group: &call.resource.group,
            kind: "",
        };
        return Err(ApiError::invalid(subject, "", &causes));
    }
    let spec = &review["spec"];
    let subject;
    let who = if is_self {
        call.who
    } else {
        subject = subject_of(spec);
        &subject
    };
    let judgement = call.server.rbac().judge(who, &action_of(spec));
    let mut status = json!({"allowed": judgement.is_allowed()});
    let reason = judgement.reason();
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    review["status"] = status;
    Ok(review)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    texts
        .filter_map(|text| text.as_str().map(str::to_owned))
        .collect()
}

/// Whom the question is about. The groups are those it names, no others.
fn subject_of(spec: &Value) -> Identity {
    let extra = spec["extra"].as_object().into_iter().flatten();
    Identity {
        user: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: texts(&spec["groups"]),
        extra: extra
            .map(|(key, values)| (key.clone(), texts(values)))
            .collect(),
    }
}

fn action_of(spec: &Value) -> Action<'_> {
    let resource = &spec["resourceAttributes"];
    if resource.is_object() {
        Action::Resource(ResourceAction {
            verb: text(resource, "verb"),
            group: text(resource, "group"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            namespace: text(resource, "namespace"),
            name: text(resource, "name"),
        })
    } else {
        let path = &spec["nonResourceAttributes"];
        Action::Path {
            verb: text(path, "verb"),
            path: text(path, "path"),
        }
    }
}

/// A path and verb as Kubernetes' own type prints them.
fn shown(path: &Value) -> String {
    json!({"Path": text(path, "path"), "Verb": text(path, "verb")}).to_string()
}

fn spec_causes(spec: &Value, is_self: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (resource, path) = (
        spec["resourceAttributes"].is_object(),
        spec["nonResourceAttributes"].is_object(),
    );
    if resource && path {
        causes.push(field::invalid_shown(
            "spec.nonResourceAttributes",
            &shown(&spec["nonResourceAttributes"]),
            "cannot be specified in combination with resourceAttributes",
        ));
    }
    if !resource && !path {
        causes.push(field::invalid_shown(
            "spec.resourceAttributes",
            "null",
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ));
    }
    if !is_self && text(spec, "user").is_empty() && texts(&spec["groups"]).is_empty() {
        causes.push(field::invalid(
            "spec.user",
            &"".into(),
            "at least one of user or group must be specified",
        ));
    }
    causes
}

fn local_causes(review: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let resource = &review["spec"]["resourceAttributes"];
    if resource.is_object() && text(resource, "namespace") != meta(review, "namespace") {
        causes.push(field::invalid(
            "spec.resourceAttributes.namespace",
            &text(resource, "namespace").into(),
            "must match metadata.namespace",
        ));
    }
    if review["spec"]["nonResourceAttributes"].is_object() {
        causes.push(field::invalid_shown(
            "spec.nonResourceAttributes",
            &shown(&review["spec"]["nonResourceAttributes"]),
            "disallowed on this kind of request",
        ));
    }
    causes
}
