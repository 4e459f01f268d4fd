//! JSON patch (RFC 6902) as kube-apiserver applies it, within bounds.
//!
//! Its library is kinder than the standard: `replace` of a member that is not there adds it, `copy`
//! of nothing makes a null, and a negative index counts from the end.
//!
//! A patch is small, what it makes need not be: copying a value into itself again and again doubles
//! it every time. How much is copied and how deep things end up is therefore limited.

use serde_json::Value;

use crate::json::{MAX_DEPTH, depth};

/// All copies of one patch together, in bytes.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Why a patch was not applied.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// An operation cannot be done, or a test fails.
    Failed,
    /// The result would be too large or too deep.
    TooLarge,
}

/// Does the operations in order.
pub(super) fn apply(object: &mut Value, operations: &[Value]) -> Result<(), Refusal> {
    let mut copied = 0;
    for operation in operations {
        let text = |field: &str| operation[field].as_str().ok_or(Refusal::Failed);
        let path = text("path")?;
        let value = || operation["value"].clone();
        match text("op")? {
            "add" => add(object, path, value())?,
            "replace" => replace(object, path, value())?,
            "remove" => drop(remove(object, path)?),
            "test" => test(object, path, operation.get("value"))?,
            "move" => {
                let from = text("from")?;
                let moved = remove(object, from)?;
                add(object, path, moved)?;
            }
            "copy" => {
                let copy = get(object, text("from")?)?.cloned().unwrap_or_default();
                copied += copy.to_string().len();
                if copied > MAX_COPIED {
                    return Err(Refusal::TooLarge);
                }
                add(object, path, copy)?;
            }
            _ => return Err(Refusal::Failed),
        }
    }
    Ok(())
}

/// The container a path leads into, and the key in it.
fn container<'a>(object: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), Refusal> {
    let mut parts: Vec<String> = path.split('/').skip(1).map(unescaped).collect();
    let key = parts.pop().ok_or(Refusal::Failed)?;
    let mut at = object;
    for part in parts {
        at = match at {
            Value::Object(map) => map.get_mut(&part).ok_or(Refusal::Failed)?,
            Value::Array(list) => {
                let index = index(&part, list.len()).ok_or(Refusal::Failed)?;
                list.get_mut(index).ok_or(Refusal::Failed)?
            }
            _ => return Err(Refusal::Failed),
        };
    }
    Ok((at, key))
}

fn unescaped(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// An index into a list of this length; a negative one counts from the end.
fn index(key: &str, length: usize) -> Option<usize> {
    let number: i64 = key.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    usize::try_from(if number < 0 { number + length } else { number }).ok()
}

fn check_depth(path: &str, value: &Value) -> Result<(), Refusal> {
    if path.matches('/').count() + depth(value) > MAX_DEPTH {
        return Err(Refusal::TooLarge);
    }
    Ok(())
}

fn add(object: &mut Value, path: &str, value: Value) -> Result<(), Refusal> {
    check_depth(path, &value)?;
    let (container, key) = container(object, path)?;
    match container {
        Value::Object(map) => drop(map.insert(key, value)),
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            // The new element counts: -1 is behind the last one.
            let index = index(&key, list.len() + 1).filter(|index| *index <= list.len());
            list.insert(index.ok_or(Refusal::Failed)?, value);
        }
        _ => return Err(Refusal::Failed),
    }
    Ok(())
}

fn replace(object: &mut Value, path: &str, value: Value) -> Result<(), Refusal> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(Refusal::Failed);
        }
        *object = value;
        return Ok(());
    }
    check_depth(path, &value)?;
    let (container, key) = container(object, path)?;
    match container {
        Value::Object(map) => drop(map.insert(key, value)),
        Value::Array(list) => {
            let index = index(&key, list.len()).ok_or(Refusal::Failed)?;
            *list.get_mut(index).ok_or(Refusal::Failed)? = value;
        }
        _ => return Err(Refusal::Failed),
    }
    Ok(())
}

fn remove(object: &mut Value, path: &str) -> Result<Value, Refusal> {
    let (container, key) = container(object, path)?;
    match container {
        Value::Object(map) => map.remove(&key).ok_or(Refusal::Failed),
        Value::Array(list) => match index(&key, list.len()) {
            Some(index) if index < list.len() => Ok(list.remove(index)),
            _ => Err(Refusal::Failed),
        },
        _ => Err(Refusal::Failed),
    }
}

/// What is at a path; a member of an object may be missing, an element of a list may not.
fn get<'a>(object: &'a mut Value, path: &str) -> Result<Option<&'a Value>, Refusal> {
    let (container, key) = container(object, path)?;
    match container {
        Value::Object(map) => Ok(map.get(&key)),
        Value::Array(list) => {
            let index = index(&key, list.len()).ok_or(Refusal::Failed)?;
            list.get(index).map(Some).ok_or(Refusal::Failed)
        }
        _ => Err(Refusal::Failed),
    }
}

fn test(object: &mut Value, path: &str, wanted: Option<&Value>) -> Result<(), Refusal> {
    let found = if path.is_empty() {
        Some(&*object)
    } else {
        get(object, path)?
    };
    let same = match (found, wanted) {
        (None, None | Some(Value::Null)) => true,
        (found, wanted) => found == wanted,
    };
    if same { Ok(()) } else { Err(Refusal::Failed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(object: Value, operations: Value) -> Result<Value, Refusal> {
        let mut object = object;
        apply(&mut object, operations.as_array().unwrap())?;
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
    fn what_the_standard_refuses_and_kubernetes_does() {
        let replace = json!([{"op": "replace", "path": "/new", "value": 1}]);
        assert_eq!(patched(json!({}), replace), Ok(json!({"new": 1})));
        let copy = json!([{"op": "copy", "from": "/no", "path": "/new"}]);
        assert_eq!(patched(json!({}), copy), Ok(json!({"new": null})));
        let last = json!([{"op": "remove", "path": "/-1"}]);
        assert_eq!(patched(json!([1, 2]), last), Ok(json!([1])));
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
