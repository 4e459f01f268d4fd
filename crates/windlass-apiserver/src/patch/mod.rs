//! Patches: JSON patch, JSON merge patch and strategic merge patch. (Apply has a module of its own.)

mod merge;
mod strategic;

use http::StatusCode;
use serde_json::Value;

use crate::status::{ApiError, Result};
use crate::types::Type;

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
    /// What a media type stands for; strategic merge is for built-in kinds alone.
    pub(crate) fn from_media_type(media_type: &str, built_in: bool) -> Result<Self> {
        match media_type {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if built_in => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ => {
                let mut accepted = vec![
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ];
                if built_in {
                    accepted.push("application/strategic-merge-patch+json");
                }
                accepted.push("application/apply-patch+yaml");
                accepted.push("application/apply-patch+cbor");
                Err(ApiError::unsupported_media_type(&accepted))
            }
        }
    }
}

/// A patch that is read and can be laid on any version of the object.
pub(crate) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    pub(crate) fn parse(kind: PatchKind, body: &[u8]) -> Result<Self> {
        let unreadable = |error: serde_json::Error| ApiError::bad_request(error.to_string());
        match kind {
            PatchKind::Json => {
                let patch: json_patch::Patch = serde_json::from_slice(body).map_err(unreadable)?;
                if patch.0.len() > MAX_JSON_PATCH_OPERATIONS {
                    return Err(ApiError::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        "RequestEntityTooLarge",
                        format!(
                            "Request entity too large: the allowed maximum operations in a JSON patch is \
                             {MAX_JSON_PATCH_OPERATIONS}, got {}",
                            patch.0.len()
                        ),
                    ));
                }
                Ok(Self::Json(patch))
            }
            PatchKind::Merge | PatchKind::Apply => Ok(Self::Merge(
                serde_json::from_slice(body).map_err(unreadable)?,
            )),
            PatchKind::Strategic => Ok(Self::Strategic(
                serde_json::from_slice(body).map_err(unreadable)?,
            )),
        }
    }

    /// The patched object.
    pub(crate) fn on(&self, object: &Value, ty: &Type) -> Result<Value> {
        match self {
            Self::Json(patch) => {
                let mut object = object.clone();
                json_patch::patch(&mut object, patch).map_err(|error| {
                    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", format!("the server rejected our request due to an error in our request: {error}"))
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
