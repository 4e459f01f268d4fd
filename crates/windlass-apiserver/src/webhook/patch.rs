//! The JSON patch of a mutating webhook, with errors as Kubernetes words them.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::json::go_error;
use crate::patch::{Refusal, apply_operations};

/// The operations, or why they cannot be read.
pub(super) fn parse(patch: &[u8]) -> Result<Vec<PatchOperation>, String> {
    let tree: Value = serde_json::from_slice(patch).map_err(|error| go_error(&error, patch))?;
    if !tree.is_array() {
        let found = match tree {
            Value::Object(_) => "object",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
            _ => return Ok(Vec::new()),
        };
        return Err(format!(
            "json: cannot unmarshal {found} into Go value of type jsonpatch.Patch"
        ));
    }
    let patch: Patch = serde_json::from_value(tree).map_err(|error| error.to_string())?;
    Ok(patch.0)
}

/// Does the operations in order, or says which could not be done.
pub(super) fn apply(object: &mut Value, operations: &[PatchOperation]) -> Result<(), String> {
    for operation in operations {
        let one = Patch(vec![operation.clone()]);
        apply_operations(object, &one).map_err(|refusal| match refusal {
            Refusal::TooLarge => "the patched object would be too large".to_owned(),
            Refusal::Failed => failed(operation),
        })?;
    }
    Ok(())
}

fn failed(operation: &PatchOperation) -> String {
    let (name, path) = match operation {
        PatchOperation::Add(add) => ("add", &add.path),
        PatchOperation::Remove(remove) => ("remove", &remove.path),
        PatchOperation::Replace(replace) => ("replace", &replace.path),
        PatchOperation::Move(moving) => ("move", &moving.from),
        PatchOperation::Copy(copy) => ("copy", &copy.from),
        PatchOperation::Test(test) => {
            return format!("testing value {} failed: test failed", test.path);
        }
    };
    let why = match operation {
        PatchOperation::Replace(_) => "missing key: missing value",
        _ => "missing value",
    };
    let what = match operation {
        PatchOperation::Replace(_) => "doc is missing key",
        PatchOperation::Remove(_) => {
            return format!(
                "remove operation does not apply: doc is missing path: \"{path}\": {why}"
            );
        }
        _ => "doc is missing path",
    };
    format!("{name} operation does not apply: {what}: {path}: missing value")
}
