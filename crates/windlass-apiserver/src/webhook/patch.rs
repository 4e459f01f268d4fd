//! The JSON patch of a mutating webhook, applied and refused as Kubernetes does.

use json_patch::{AddOperation, Patch, PatchOperation};
use serde_json::Value;

use crate::json::go_error;
use crate::patch::{Refusal, apply_operations};

/// The operations, or why they cannot be read.
pub(super) fn parse(patch: &[u8]) -> Result<Vec<PatchOperation>, String> {
    let tree: Value = serde_json::from_slice(patch).map_err(|error| go_error(&error, patch))?;
    let found = match tree {
        Value::Array(_) => {
            let patch: Patch = serde_json::from_value(tree).map_err(|error| error.to_string())?;
            return Ok(patch.0);
        }
        Value::Null => return Ok(Vec::new()),
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
    };
    Err(format!(
        "json: cannot unmarshal {found} into Go value of type jsonpatch.Patch"
    ))
}

/// Does the operations in order, or says which could not be done.
pub(super) fn apply(object: &mut Value, operations: &[PatchOperation]) -> Result<(), String> {
    for operation in operations {
        let one = Patch(vec![lenient(operation, object)]);
        apply_operations(object, &one).map_err(|refusal| match refusal {
            Refusal::TooLarge => "the patched object would be too large".to_owned(),
            Refusal::Failed => failed(operation),
        })?;
    }
    Ok(())
}

/// A key that is not there can be replaced all the same.
fn lenient(operation: &PatchOperation, object: &Value) -> PatchOperation {
    match operation {
        PatchOperation::Replace(replace)
            if replace.path.resolve(object).is_err()
                && replace
                    .path
                    .parent()
                    .and_then(|parent| parent.resolve(object).ok())
                    .is_some_and(Value::is_object) =>
        {
            PatchOperation::Add(AddOperation {
                path: replace.path.clone(),
                value: replace.value.clone(),
            })
        }
        other => other.clone(),
    }
}

fn failed(operation: &PatchOperation) -> String {
    match operation {
        PatchOperation::Add(add) => format!(
            "add operation does not apply: doc is missing path: \"{}\": missing value",
            add.path
        ),
        PatchOperation::Remove(remove) => {
            let key = remove.path.last().map(|key| key.decoded().into_owned());
            format!(
                "error in remove for path: '{}': Unable to remove nonexistent key: {}: missing value",
                remove.path,
                key.unwrap_or_default()
            )
        }
        PatchOperation::Replace(replace) => format!(
            "replace operation does not apply: doc is missing path: {}: missing value",
            replace.path
        ),
        PatchOperation::Move(moving) => format!(
            "move operation does not apply: doc is missing from path: {}: missing value",
            moving.from
        ),
        PatchOperation::Copy(copy) => format!(
            "copy operation does not apply: doc is missing from path: {}: missing value",
            copy.from
        ),
        PatchOperation::Test(test) => {
            format!("testing value {} failed: test failed", test.path)
        }
    }
}
