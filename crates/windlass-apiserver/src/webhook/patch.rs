//! The JSON patch of a mutating webhook, applied and refused as Kubernetes does.

use serde_json::{Map, Value};

use crate::go;
use crate::json::go_error;
use crate::patch::{Refusal, Spent, do_one};

/// One step of a patch.
pub(super) type Operation = Map<String, Value>;

/// The operations, or why they cannot be read.
pub(super) fn parse(patch: &[u8]) -> Result<Vec<Operation>, String> {
    let unreadable = |found: &Value, wanted: &str| {
        let found = go::json_kind(found);
        format!("json: cannot unmarshal {found} into Go value of type jsonpatch.{wanted}")
    };
    match serde_json::from_slice(patch).map_err(|error| go_error(&error, patch))? {
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
pub(super) fn apply(object: &mut Value, operations: &[Operation]) -> Result<(), String> {
    let mut spent = Spent::default();
    for operation in operations {
        do_one(object, operation, &mut spent).map_err(|refusal| match refusal {
            Refusal::TooLarge => "the patched object would be too large".to_owned(),
            Refusal::Failed => failed(operation),
        })?;
    }
    Ok(())
}

fn failed(operation: &Operation) -> String {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let text = |field: &str| text(field).unwrap_or_default();
    let (path, from) = (text("path"), text("from"));
    match text("op") {
        "add" => {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        }
        "remove" => {
            let key = path.rsplit('/').next().unwrap_or_default();
            let key = key.replace("~1", "/").replace("~0", "~");
            format!(
                "error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value"
            )
        }
        "replace" => {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        }
        op @ ("move" | "copy") => {
            format!(
                "{op} operation does not apply: doc is missing from path: {from}: missing value"
            )
        }
        "test" => format!("testing value {path} failed: test failed"),
        other => format!("Unexpected kind: {other}"),
    }
}
