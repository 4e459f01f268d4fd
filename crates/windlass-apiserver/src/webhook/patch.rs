//! The JSON patch of a mutating webhook, applied and refused as Kubernetes does.

use serde_json::{Map, Value};

use crate::go;
use crate::json::go_error;
use crate::patch::{Refusal, Spent, do_one};

/// One step of a patch.
pub(super) type Operation = Map<String, Value>;

/// Why the patch of a webhook cannot be read, in Go's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParseError {
    #[error("{0}")]
    Json(String),
    #[error("json: cannot unmarshal {found} into Go value of type jsonpatch.{ty}")]
    Type { found: String, ty: &'static str },
}

/// Why the patch of a webhook cannot be applied, in the words of Kubernetes' library.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    #[error("the patched object would be too large")]
    TooLarge,
    #[error("add operation does not apply: doc is missing path: \"{path}\": missing value")]
    Add { path: String },
    #[error(
        "error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value"
    )]
    Remove { path: String, key: String },
    #[error("replace operation does not apply: doc is missing path: {path}: missing value")]
    Replace { path: String },
    /// A move or a copy.
    #[error("{op} operation does not apply: doc is missing from path: {from}: missing value")]
    From { op: String, from: String },
    #[error("testing value {path} failed: test failed")]
    Test { path: String },
    #[error("Unexpected kind: {0}")]
    Unknown(String),
}

/// Reads the operations.
pub(super) fn parse(patch: &[u8]) -> Result<Vec<Operation>, ParseError> {
    let unreadable = |found: &Value, ty| ParseError::Type {
        found: go::json_kind(found),
        ty,
    };
    let read = serde_json::from_slice(patch);
    match read.map_err(|error| ParseError::Json(go_error(&error, patch)))? {
        Value::Array(operations) => operations
            .into_iter()
            .map(|operation| match operation {
                Value::Object(operation) => Ok(operation),
                other => Err(unreadable(&other, "Operation")),
            })
            .collect(),
        Value::Null => Ok(Vec::new()),
        other => Err(unreadable(&other, "Patch")),
    }
}

/// Does the operations in order, or says which could not be done.
pub(super) fn apply(object: &mut Value, operations: &[Operation]) -> Result<(), ApplyError> {
    let mut spent = Spent::default();
    for operation in operations {
        do_one(object, operation, &mut spent).map_err(|refusal| match refusal {
            Refusal::TooLarge => ApplyError::TooLarge,
            Refusal::Failed => failed(operation),
        })?;
    }
    Ok(())
}

fn failed(operation: &Operation) -> ApplyError {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let text = |field: &str| text(field).unwrap_or_default().to_owned();
    let (op, path, from) = (text("op"), text("path"), text("from"));
    match &*op {
        "add" => ApplyError::Add { path },
        "remove" => {
            let key = path.rsplit('/').next().unwrap_or_default();
            let key = key.replace("~1", "/").replace("~0", "~");
            ApplyError::Remove { path, key }
        }
        "replace" => ApplyError::Replace { path },
        "move" | "copy" => ApplyError::From { op, from },
        "test" => ApplyError::Test { path },
        _ => ApplyError::Unknown(op),
    }
}
