//! Patches: JSON patch, JSON merge patch and strategic merge patch. (Apply has a module of its own.)

mod merge;
mod operations;
mod restore;
mod strategic;

use http::StatusCode;
use serde_json::{Map, Value, json as tree};

pub(crate) use operations::{Refusal, Spent, do_one};
pub(crate) use restore::unrestorable;

use crate::go;
use crate::json;
use crate::object::meta;
use crate::registry::types::Type;
use crate::status::{ApiError, Result};

/// More operations than this in one JSON patch are refused.
const MAX_JSON_PATCH_OPERATIONS: usize = 10_000;

/// The media types of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    /// Whether a media type stands for server-side apply.
    pub(crate) fn is_apply(media_type: &str) -> bool {
        media_type == "application/apply-patch+yaml"
    }

    /// What a media type stands for; strategic merge is for built-in kinds alone.
    pub(crate) fn from_media_type(media_type: &str, built_in: bool) -> Result<Self> {
        match media_type {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if built_in => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            // Built-in resources are routed by media type, custom ones look at it themselves.
            _ if built_in => {
                let mut error = ApiError::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "UnsupportedMediaType",
                    "415: Unsupported Media Type",
                );
                error.details = Some(tree!({}));
                Err(error)
            }
            _ => Err(ApiError::unsupported_media_type(&[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
            ])),
        }
    }
}

/// A patch that is read and can be laid on any version of the object.
pub(crate) enum Patch {
    Json(Vec<Map<String, Value>>),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    pub(crate) fn parse(kind: PatchKind, body: &[u8]) -> Result<Self> {
        let of_what = match kind {
            PatchKind::Strategic => "",
            _ => "error decoding patch: ",
        };
        let document = json::from_json(body).map_err(|error| {
            ApiError::bad_request(format!("{of_what}{}", json::go_error(&error, body)))
        })?;
        match (kind, document.value) {
            (PatchKind::Json, Value::Array(operations)) => {
                if operations.len() > MAX_JSON_PATCH_OPERATIONS {
                    return Err(ApiError::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        "RequestEntityTooLarge",
                        format!(
                            "Request entity too large: The allowed maximum operations in a JSON patch is \
                             {MAX_JSON_PATCH_OPERATIONS}, got {}",
                            operations.len()
                        ),
                    ));
                }
                let operations = operations.into_iter().map(|operation| match operation {
                    Value::Object(operation) => Ok(operation),
                    other => Err(wrong_shape(of_what, &other, "handlers.jsonPatchOp")),
                });
                operations.collect::<Result<_>>().map(Self::Json)
            }
            (PatchKind::Json, Value::Null) => Ok(Self::Json(Vec::new())),
            (PatchKind::Json, other) => Err(wrong_shape(of_what, &other, "[]handlers.jsonPatchOp")),
            (PatchKind::Strategic, patch @ Value::Object(_)) => Ok(Self::Strategic(patch)),
            (PatchKind::Strategic, Value::Null) => Ok(Self::Strategic(tree!({}))),
            (PatchKind::Merge, Value::Null) => Err(ApiError::bad_request("Invalid JSON Patch")),
            (_, patch @ Value::Object(_)) => Ok(Self::Merge(patch)),
            (_, other) => Err(wrong_shape(of_what, &other, "map[string]interface {}")),
        }
    }

    /// Whether it looks into that member of the object.
    pub(crate) fn touches(&self, member: &str) -> bool {
        match self {
            Self::Json(operations) => operations.iter().any(|operation| {
                ["path", "from"].iter().any(|field| {
                    let path = operation.get(*field).and_then(Value::as_str);
                    let parts: Vec<_> = path.unwrap_or_default().split('/').skip(1).collect();
                    parts.len() > 1 && parts.first() == Some(&member)
                })
            }),
            Self::Merge(patch) => patch.get(member).is_some(),
            Self::Strategic(_) => false,
        }
    }

    /// Whether it holds only for one version or one uid of the object: by naming it, or by a test.
    pub(crate) fn is_guarded(&self) -> bool {
        const GUARDS: [&str; 2] = ["resourceVersion", "uid"];
        match self {
            Self::Json(operations) => operations.iter().any(|operation| {
                let path = operation.get("path").and_then(Value::as_str);
                let field = path.and_then(|path| path.strip_prefix("/metadata/"));
                let tests = operation.get("op").and_then(Value::as_str) == Some("test");
                tests || field.is_some_and(|field| GUARDS.contains(&field))
            }),
            Self::Merge(patch) | Self::Strategic(patch) => {
                GUARDS.iter().any(|field| !meta(patch, field).is_empty())
            }
        }
    }

    /// The patched object.
    pub(crate) fn on(&self, object: &Value, ty: &Type) -> Result<Value> {
        match self {
            Self::Json(patch) => {
                let mut object = object.clone();
                operations::apply(&mut object, patch).map_err(|refusal| match refusal {
                    Refusal::Failed => rejected(),
                    Refusal::TooLarge => ApiError::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        "RequestEntityTooLarge",
                        "Request entity too large: what the patch makes is too large",
                    ),
                })?;
                Ok(object)
            }
            Self::Merge(patch) => {
                let mut object = object.clone();
                merge::apply(&mut object, patch);
                Ok(object)
            }
            Self::Strategic(patch) => strategic::apply(object, patch, ty),
        }
    }
}

/// Lays a merge patch on an object, for tests.
#[cfg(test)]
pub(crate) fn merged(object: &mut Value, patch: &Value) {
    merge::apply(object, patch);
}

/// A JSON patch that cannot be applied.
fn rejected() -> ApiError {
    let mut error = ApiError::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "Invalid",
        "the server rejected our request due to an error in our request",
    );
    error.details = Some(tree!({}));
    error
}

fn wrong_shape(of_what: &str, patch: &Value, wanted: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{of_what}json: cannot unmarshal {} into Go value of type {wanted}",
        go::json_kind(patch)
    ))
}
