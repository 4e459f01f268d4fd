//! JSON patch (RFC 6902), within bounds.
//!
//! A patch is small, what it makes need not be: copying a value into itself again and again doubles
//! it every time. How much is copied and how deep things end up is therefore limited.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use crate::json::{MAX_DEPTH, depth};

/// All copies of one patch together, in bytes.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Why a patch was not applied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// An operation cannot be done, or a test fails.
    Failed,
    /// The result would be too large or too deep.
    TooLarge,
}

/// Does the operations in order.
pub(crate) fn apply(object: &mut Value, patch: &Patch) -> Result<(), Refusal> {
    let mut copied = 0;
    for operation in &patch.0 {
        let (steps, below) = match operation {
            PatchOperation::Add(add) => (add.path.count(), depth(&add.value)),
            PatchOperation::Replace(replace) => (replace.path.count(), depth(&replace.value)),
            PatchOperation::Copy(copy) => {
                let source = copy.from.resolve(object).map_err(|_| Refusal::Failed)?;
                copied += source.to_string().len();
                (copy.path.count(), depth(source))
            }
            PatchOperation::Move(moving) => {
                let source = moving.from.resolve(object).map_err(|_| Refusal::Failed)?;
                (moving.path.count(), depth(source))
            }
            PatchOperation::Remove(_) | PatchOperation::Test(_) => (0, 0),
        };
        if copied > MAX_COPIED || steps + below > MAX_DEPTH {
            return Err(Refusal::TooLarge);
        }
        let one = std::slice::from_ref(operation);
        json_patch::patch(object, one).map_err(|_| Refusal::Failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(object: Value, operations: Value) -> Result<Value, Refusal> {
        let mut object = object;
        apply(&mut object, &serde_json::from_value(operations).unwrap())?;
        Ok(object)
    }

    #[test]
    fn operations_are_done_in_order() {
        let operations = json!([
            {"op": "add", "path": "/b", "value": [1]},
            {"op": "copy", "from": "/b", "path": "/c"},
            {"op": "move", "from": "/a", "path": "/b/-"},
            {"op": "test", "path": "/b/1", "value": "x"},
        ]);
        assert_eq!(
            patched(json!({"a": "x"}), operations),
            Ok(json!({"b": [1, "x"], "c": [1]}))
        );
        let missing = json!([{"op": "remove", "path": "/no"}]);
        assert_eq!(patched(json!({}), missing), Err(Refusal::Failed));
    }

    #[test]
    fn a_patch_that_doubles_its_object_is_stopped() {
        let copy = |path: &str| json!({"op": "copy", "from": "/a", "path": path});
        let wide: Vec<Value> = (0..100).map(|_| copy("/a/-")).collect();
        let object = json!({"a": ["x".repeat(1000)]});
        assert_eq!(patched(object, wide.into()), Err(Refusal::TooLarge));
        let deep: Vec<Value> = (1..100)
            .map(|n| json!({"op": "add", "path": "/a".repeat(n), "value": {"a": {}}}))
            .collect();
        assert_eq!(
            patched(json!({"a": {}}), deep.into()),
            Err(Refusal::TooLarge)
        );
    }
}
