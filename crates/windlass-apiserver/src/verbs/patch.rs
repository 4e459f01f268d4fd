//! Patch: an object changed in part, by JSON patch, merge patch or strategic merge patch.

use http::StatusCode;
use serde_json::Value;

use super::pipeline::{self, Update};
use super::{Call, apply, body, form, present};
use crate::decode::{self, DecodeError};
use crate::go;
use crate::http::{Answer, media_type};
use crate::object::meta;
use crate::patch::{Patch, PatchKind, unrestorable};
use crate::status::{ApiError, Result, Subject, field};

pub(super) async fn run(call: &Call<'_>, subresource: &str) -> Result<Answer> {
    let kind = PatchKind::from_media_type(media_type(call.headers), !call.resource.is_custom())?;
    if kind == PatchKind::Apply {
        return apply::run(call, subresource).await;
    }
    // What is not there is missed before the patch is read.
    call.find()?;
    let patch = Patch::parse(kind, &call.body)?;
    call.note_guard(patch.is_guarded());
    let make = |old: &Value| -> Result<Update> {
        let mut object = patch.on(old, &call.resource.ty)?;
        let refuse = {
            // What could not be read is shown: the patched object, or the patch alone.
            let shown = match &patch {
                Patch::Strategic(patch) => {
                    let why = unrestorable(&object, &call.resource.ty);
                    if let Some(why) = why {
                        return Err(unreadable(go::plus_v(patch), &why));
                    }
                    go::plus_v(patch)
                }
                Patch::Json(_) | Patch::Merge(_) if call.resource.is_custom() => object.to_string(),
                // What the patch went through is written anew, its fields by name.
                patch if patch.touches("metadata") => object.to_string(),
                Patch::Json(_) | Patch::Merge(_) => go::object_json(&object),
            };
            move |why: String| unreadable(shown, &why)
        };
        if call.resource.is_custom() {
            decode::check_kind(&object, &call.resource)?;
        } else if let Some(why) = decode::misread(&object, &call.resource) {
            return Err(refuse(why));
        }
        let strange = match form::normalise(&call.resource, &mut object) {
            Ok(strange) => strange,
            Err(why @ DecodeError::Base64(_)) if kind == PatchKind::Strategic => {
                return Err(refuse(format!("error decoding from json: {why}")));
            }
            Err(why) => return Err(refuse(why.to_string())),
        };
        body::judge_strange(call, strange, refuse)?;
        if meta(&object, "name").is_empty() {
            return Err(call.nameless());
        }
        Ok(Update {
            object,
            managers: None,
        })
    };
    let written = pipeline::update(call, subresource, &make).await?;
    present::written(call, written, StatusCode::OK).await
}

fn unreadable(shown: String, why: &str) -> ApiError {
    let nothing = Subject {
        group: "",
        kind: "",
    };
    ApiError::invalid(
        nothing,
        "",
        &[field::invalid("patch", &Value::from(shown), why)],
    )
}
