//! JSON patch (RFC 6902), as Kubernetes' library reads it, and within bounds.
//!
//! It is more lenient than the RFC: what is not there counts as null (so `replace` adds it, `test`
//! finds null and `copy` copies null), a missing value is null, places in lists may be counted from
//! their end, and the part of a path in front of its first slash is ignored.
//!
//! A patch is small, what it makes need not be: copying a value into itself again and again doubles
//! it every time. How much is copied and how deep things end up is therefore limited. So is how much
//! is moved about: each of ten thousand operations may put something in front of a long list.

use serde_json::{Map, Value};

use crate::json::{MAX_DEPTH, depth};
use crate::steps::steps;

/// All copies of one patch together, in bytes.
const MAX_COPIED: usize = 3 * 1024 * 1024;
/// All values that the operations of one patch look at or move aside.
const MAX_MOVED: usize = 8 * 1024 * 1024;

/// What the operations of one patch have cost so far.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    /// Bytes that were copied.
    copied: usize,
    /// Values that were looked at or moved aside.
    moved: usize,
}

impl Spent {
    fn copy(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.copied += bytes;
        within(self.copied, MAX_COPIED)
    }

    fn move_aside(&mut self, values: usize) -> Result<(), Refusal> {
        steps(values);
        self.moved += values;
        within(self.moved, MAX_MOVED)
    }

    /// Refuses what would be too deep at the end of `path`.
    fn measure(&mut self, path: &str, value: &Value) -> Result<(), Refusal> {
        let mut values = 0;
        let depth = depth(value, &mut values);
        self.move_aside(values)?;
        within(path.split('/').count() + depth, MAX_DEPTH)
    }
}

fn within(spent: usize, most: usize) -> Result<(), Refusal> {
    if spent > most {
        return Err(Refusal::TooLarge);
    }
    Ok(())
}

/// Why a patch was not applied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// An operation cannot be done, or a test fails.
    Failed,
    /// The result would be too large or too deep.
    TooLarge,
}

/// Does the operations in order.
pub(super) fn apply(object: &mut Value, operations: &[Map<String, Value>]) -> Result<(), Refusal> {
    let mut spent = Spent::default();
    for operation in operations {
        do_one(object, operation, &mut spent)?;
    }
    Ok(())
}

/// Does one operation; `spent` is what those of the same patch have cost so far.
pub(crate) fn do_one(
    object: &mut Value,
    operation: &Map<String, Value>,
    spent: &mut Spent,
) -> Result<(), Refusal> {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let path = text("path").ok_or(Refusal::Failed)?;
    let value = || operation.get("value").cloned().unwrap_or_default();
    let from = || text("from").ok_or(Refusal::Failed);
    match text("op").unwrap_or_default() {
        "add" => add(object, path, value(), spent),
        "remove" => remove(object, path, spent).map(drop),
        "replace" => replace(object, path, value(), spent),
        "test" => test(object, path, &value()),
        "move" => {
            let moved = remove(object, from()?, spent)?;
            add(object, path, moved, spent)
        }
        "copy" => {
            let (holder, key) = holder(object, from()?)?;
            let copy = get(holder, &key)?.cloned().unwrap_or_default();
            spent.copy(copy.to_string().len())?;
            add(object, path, copy, spent)
        }
        _ => Err(Refusal::Failed),
    }
}

/// What holds the last part of a path, and that part.
fn holder<'a>(object: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), Refusal> {
    let mut parts: Vec<String> = path
        .split('/')
        .skip(1)
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect();
    let last = parts.pop().ok_or(Refusal::Failed)?;
    if parts.len() > MAX_DEPTH {
        return Err(Refusal::TooLarge);
    }
    let holder = parts.iter().try_fold(object, |holder, part| match holder {
        Value::Object(map) => map.get_mut(part).ok_or(Refusal::Failed),
        Value::Array(items) => {
            let at = place(part, items.len())?;
            items.get_mut(at).ok_or(Refusal::Failed)
        }
        _ => Err(Refusal::Failed),
    })?;
    Ok((holder, last))
}

/// A place in a list of `length`; below zero it is counted from the end.
fn place(part: &str, length: usize) -> Result<usize, Refusal> {
    let number: i64 = part.parse().map_err(|_| Refusal::Failed)?;
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let place = if number < 0 { number + length } else { number };
    usize::try_from(place).map_err(|_| Refusal::Failed)
}

fn get<'a>(holder: &'a Value, key: &str) -> Result<Option<&'a Value>, Refusal> {
    match holder {
        Value::Object(map) => Ok(map.get(key).filter(|value| !value.is_null())),
        Value::Array(items) => {
            let at = place(key, items.len())?;
            items.get(at).map(Some).ok_or(Refusal::Failed)
        }
        _ => Err(Refusal::Failed),
    }
}

fn add(object: &mut Value, path: &str, value: Value, spent: &mut Spent) -> Result<(), Refusal> {
    spent.measure(path, &value)?;
    let (holder, key) = holder(object, path)?;
    match holder {
        Value::Object(map) => {
            map.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let at = place(&key, items.len() + 1)?;
            let Some(aside) = items.len().checked_sub(at) else {
                return Err(Refusal::Failed);
            };
            spent.move_aside(aside)?;
            items.insert(at, value);
        }
        _ => return Err(Refusal::Failed),
    }
    Ok(())
}

fn remove(object: &mut Value, path: &str, spent: &mut Spent) -> Result<Value, Refusal> {
    let (holder, key) = holder(object, path)?;
    match holder {
        Value::Object(map) => map.remove(&key).ok_or(Refusal::Failed),
        Value::Array(items) => {
            let at = place(&key, items.len())?;
            if at >= items.len() {
                return Err(Refusal::Failed);
            }
            spent.move_aside(items.len() - at)?;
            Ok(items.remove(at))
        }
        _ => Err(Refusal::Failed),
    }
}

fn replace(object: &mut Value, path: &str, value: Value, spent: &mut Spent) -> Result<(), Refusal> {
    spent.measure(path, &value)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(Refusal::Failed);
        }
        *object = value;
        return Ok(());
    }
    let (holder, key) = holder(object, path)?;
    get(holder, &key)?;
    match holder {
        Value::Object(map) => {
            map.insert(key, value);
        }
        Value::Array(items) => {
            let at = place(&key, items.len())?;
            *items.get_mut(at).ok_or(Refusal::Failed)? = value;
        }
        _ => return Err(Refusal::Failed),
    }
    Ok(())
}

fn test(object: &mut Value, path: &str, wanted: &Value) -> Result<(), Refusal> {
    let passes = if path.is_empty() {
        object == wanted
    } else {
        let (holder, key) = holder(object, path)?;
        get(holder, &key)?.unwrap_or(&Value::Null) == wanted
    };
    if passes { Ok(()) } else { Err(Refusal::Failed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(object: Value, operations: Value) -> Result<Value, Refusal> {
        let mut object = object;
        let operations: Vec<Map<String, Value>> = serde_json::from_value(operations).unwrap();
        apply(&mut object, &operations)?;
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

    #[test]
    fn patch_that_moves_a_large_value_again_and_again_is_stopped() {
        let long = json!({"a": vec![0; 100_000]});
        let one = |operation: Value| Value::from(vec![operation]);
        let front = json!({"op": "add", "path": "/a/0", "value": 1});
        assert!(patched(long.clone(), one(front.clone())).is_ok());
        let there_and_back: Vec<Value> = (0..1000)
            .map(|n| match n % 2 {
                0 => json!({"op": "move", "from": "/a", "path": "/b"}),
                _ => json!({"op": "move", "from": "/b", "path": "/a"}),
            })
            .collect();
        for patch in [
            vec![front; 1000],
            vec![json!({"op": "remove", "path": "/a/0"}); 1000],
            there_and_back,
        ] {
            let (result, steps) = crate::steps::counted(|| patched(long.clone(), patch.into()));
            assert_eq!(result, Err(Refusal::TooLarge));
            assert!(steps <= (2 * MAX_MOVED + 400_000) as u64, "{steps} steps");
        }
    }
}
