//! Values set at JSON pointers, in objects and in patches.

use serde_json::{Map, Value, json};

fn segments(pointer: &str) -> Vec<&str> {
    pointer.split('/').skip(1).collect()
}

/// Sets a value in an object; objects on the way are made, elements of lists are not.
pub(crate) fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    let all = segments(pointer);
    for (depth, segment) in all.iter().enumerate() {
        let last = depth + 1 == all.len();
        if at.is_null() {
            *at = json!({});
        }
        match at {
            Value::Object(map) if last => {
                map.insert((*segment).to_owned(), value);
                return;
            }
            Value::Object(map) => {
                at = map
                    .entry((*segment).to_owned())
                    .or_insert_with(|| json!({}));
            }
            Value::Array(items) => match segment
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get_mut(index))
            {
                Some(element) if last => {
                    *element = value;
                    return;
                }
                Some(element) => at = element,
                None => return,
            },
            _ => return,
        }
    }
}

/// Sets a value in a merge patch, which replaces lists whole: an element's place means the list of it.
pub(crate) fn merge_at(patch: &mut Value, pointer: &str, value: Value) {
    nest(patch, &segments(pointer), value, &Value::Null);
}

/// Sets a value in a strategic merge patch or an apply: an element of a list is named by its keys,
/// which the plain object knows.
pub(crate) fn strategic_at(patch: &mut Value, base: &Value, pointer: &str, value: Value) {
    nest(patch, &segments(pointer), value, base);
}

fn nest(at: &mut Value, path: &[&str], value: Value, base: &Value) {
    let Some((segment, rest)) = path.split_first() else {
        *at = value;
        return;
    };
    if let Ok(index) = segment.parse::<usize>() {
        let element = &base[index];
        let mut keys = Map::new();
        for key in ["name", "port", "host", "type"] {
            if let Some(found) = element.get(key) {
                keys.insert(key.into(), found.clone());
                break;
            }
        }
        let mut only = Value::Object(keys);
        nest(&mut only, rest, value, element);
        *at = json!([only]);
        return;
    }
    if !at.is_object() {
        *at = json!({});
    }
    if let Value::Object(map) = at {
        nest(
            map.entry((*segment).to_owned()).or_insert(Value::Null),
            rest,
            value,
            &base[*segment],
        );
    }
}
