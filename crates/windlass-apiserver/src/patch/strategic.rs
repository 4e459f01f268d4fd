//! Strategic merge patch: a merge patch that knows which lists are merged and by what key.
//!
//! Directives ride in the patch: `$patch` (replace, delete, merge), `$retainKeys`,
//! `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`.

use serde_json::{Map, Value};

use crate::go;
use crate::status::{ApiError, Result};
use crate::types::{PatchRule, Type};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// Lays a strategic merge `patch` on an object of type `ty`.
pub(crate) fn apply(object: &Value, patch: &Value, ty: &Type) -> Result<Value> {
    let (Value::Object(object), Value::Object(patch)) = (object, patch) else {
        return Err(ApiError::bad_request(
            "a strategic merge patch must be a JSON object",
        ));
    };
    merge_maps(object, patch, ty).map(Value::Object)
}

fn merge_maps(
    object: &Map<String, Value>,
    patch: &Map<String, Value>,
    ty: &Type,
) -> Result<Map<String, Value>> {
    match patch.get(PATCH).map(|directive| directive.as_str()) {
        None | Some(Some("merge")) => {}
        Some(Some("replace")) => {
            let mut replaced = patch.clone();
            replaced.remove(PATCH);
            return Ok(replaced);
        }
        Some(Some("delete")) => return Ok(Map::new()),
        Some(other) => {
            return Err(ApiError::bad_request(format!(
                "unknown patch type found: {}",
                other.unwrap_or("not text")
            )));
        }
    }
    let mut out = object.clone();
    if let Some(retain) = patch.get(RETAIN_KEYS) {
        let keep = retain
            .as_array()
            .ok_or_else(|| ApiError::bad_request("$retainKeys must be a list"))?;
        out.retain(|key, _| keep.iter().any(|kept| kept.as_str() == Some(key)));
    }
    for (key, value) in patch {
        if key == PATCH || key == RETAIN_KEYS || key.starts_with(ELEMENT_ORDER) {
            continue;
        }
        if let Some(field) = key.strip_prefix(DELETE_FROM) {
            if let (Some(Value::Array(items)), Some(gone)) = (out.get_mut(field), value.as_array())
            {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if value.is_null() {
            out.remove(key);
            continue;
        }
        let no_rule = PatchRule::default();
        let rule = ty.field(key).map_or(&no_rule, |field| &field.patch);
        let merged = match (out.get(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                Value::Object(merge_maps(old, new, ty.member(key))?)
            }
            (Some(Value::Array(old)), Value::Array(new)) if rule.merge => {
                let order = patch
                    .get(&format!("{ELEMENT_ORDER}{key}"))
                    .and_then(Value::as_array)
                    .map(Vec::as_slice);
                Value::Array(merge_lists(old, new, order, rule, ty.member(key))?)
            }
            (_, new) => {
                if let Some(new) = without_directives(new) {
                    new
                } else {
                    out.remove(key);
                    continue;
                }
            }
        };
        out.insert(key.clone(), merged);
    }
    // An order may come without any change to the list itself.
    for (key, value) in patch {
        if let Some(field) = key.strip_prefix(ELEMENT_ORDER)
            && !patch.contains_key(field)
            && let (Some(Value::Array(items)), Some(order)) = (out.get(field), value.as_array())
        {
            let key = ty
                .field(field)
                .and_then(|field| field.patch.merge_key.as_deref());
            let before = object.get(field).and_then(Value::as_array);
            let ordered = in_order(items, order, before.map_or(&[], Vec::as_slice), key);
            out.insert(field.to_owned(), Value::Array(ordered));
        }
    }
    Ok(out)
}

/// A part of the patch that meets nothing to be merged with: taken as it is, but for nulls and
/// for maps that hold a directive, which have nothing to direct.
fn without_directives(patch: &Value) -> Option<Value> {
    match patch {
        Value::Null => None,
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => Some(Value::Object(
            map.iter()
                .filter(|(key, _)| !key.starts_with('$'))
                .filter_map(|(key, value)| Some((key.clone(), without_directives(value)?)))
                .collect(),
        )),
        Value::Array(items) => Some(items.iter().filter_map(without_directives).collect()),
        other => Some(other.clone()),
    }
}

fn merge_lists(
    old: &[Value],
    new: &[Value],
    order: Option<&[Value]>,
    rule: &PatchRule,
    ty: &Type,
) -> Result<Vec<Value>> {
    let maps = new.iter().chain(old).any(Value::is_object);
    let mut out = old.to_vec();
    match rule.merge_key.as_deref().filter(|_| maps) {
        None => {
            for item in new {
                if !out.contains(item) {
                    out.push(item.clone());
                }
            }
            Ok(in_order(&out, order.unwrap_or(new), old, None))
        }
        Some(merge_key) => {
            if new.iter().any(|item| item[PATCH] == "replace") {
                return Ok(new
                    .iter()
                    .filter(|item| item[PATCH] != "replace")
                    .cloned()
                    .collect());
            }
            for item in new {
                let Value::Object(fields) = item else {
                    return Err(ApiError::bad_request(
                        "expected a list of maps in the patch",
                    ));
                };
                let Some(key) = fields.get(merge_key) else {
                    return Err(ApiError::without_reason(format!(
                        "map: {} does not contain declared merge key: {merge_key}",
                        go::plus_v(item)
                    )));
                };
                let found = out
                    .iter()
                    .position(|known| known.get(merge_key) == Some(key));
                match (found, item[PATCH] == "delete") {
                    (Some(at), true) => {
                        out.remove(at);
                    }
                    (None, true) => {}
                    (Some(at), false) => {
                        let known = out[at].as_object().cloned().unwrap_or_default();
                        out[at] = Value::Object(merge_maps(&known, fields, ty.item())?);
                    }
                    (None, false) => out.extend(without_directives(item)),
                }
            }
            Ok(in_order(&out, order.unwrap_or(new), old, Some(merge_key)))
        }
    }
}

/// Puts merged items in order: those the patch names (in `order`) as it names them, the others as
/// they stood `before`. Where the two meet, an item that stood in front of the patch's next one
/// stays in front; an item that is new to the list comes first.
fn in_order(
    items: &[Value],
    order: &[Value],
    before: &[Value],
    merge_key: Option<&str>,
) -> Vec<Value> {
    let same = |a: &Value, b: &Value| merge_key.map_or_else(|| a == b, |key| a[key] == b[key]);
    let place = |list: &[Value], item: &Value| list.iter().position(|known| same(known, item));
    let (mut named, mut others): (Vec<&Value>, Vec<&Value>) =
        items.iter().partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    others.sort_by_key(|item| place(before, item));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut out = Vec::with_capacity(items.len());
    loop {
        let stays_in_front = match (others.peek(), named.peek()) {
            (None, None) => return out,
            (None, Some(_)) => false,
            (Some(_), None) => true,
            (Some(other), Some(next)) => matches!(
                (place(before, other), place(before, next)),
                (Some(other), Some(next)) if other < next
            ),
        };
        let next = if stays_in_front {
            others.next()
        } else {
            named.next()
        };
        out.extend(next.cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod_template() -> Type {
        Type::Named("io.k8s.api.core.v1.PodSpec".into())
    }

    fn patched(object: &Value, patch: &Value) -> Value {
        apply(object, patch, &pod_template()).unwrap()
    }

    #[test]
    fn containers_merge_by_name() {
        let object =
            json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]});
        let patch =
            json!({"containers": [{"name": "b", "image": "2"}, {"name": "c", "image": "3"}]});
        let expected = json!({"containers": [
            {"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c", "image": "3"}]});
        let new_comes_first = patched(&object, &json!({"containers": [{"name": "z"}]}));
        assert_eq!(new_comes_first["containers"][0]["name"], "z");
        assert_eq!(patched(&object, &patch), expected);
    }

    #[test]
    fn directives_delete_replace_retain_and_order() {
        let object = json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"x": "1", "y": "2"}});
        assert_eq!(
            patched(
                &object,
                &json!({"containers": [{"name": "a", "$patch": "delete"}]})
            )["containers"],
            json!([{"name": "b"}])
        );
        assert_eq!(
            patched(
                &object,
                &json!({"containers": [{"name": "z"}, {"$patch": "replace"}]})
            )["containers"],
            json!([{"name": "z"}])
        );
        assert_eq!(
            patched(
                &object,
                &json!({"nodeSelector": {"$retainKeys": ["x"], "x": "9"}})
            )["nodeSelector"],
            json!({"x": "9"})
        );
        assert_eq!(
            patched(
                &object,
                &json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]})
            )["containers"],
            json!([{"name": "b"}, {"name": "a"}])
        );
    }

    #[test]
    fn a_list_without_a_merge_rule_is_replaced() {
        let object = json!({"containers": [{"name": "a", "args": ["1", "2"]}]});
        let patch = json!({"containers": [{"name": "a", "args": ["3"]}]});
        assert_eq!(
            patched(&object, &patch)["containers"][0]["args"],
            json!(["3"])
        );
    }
}
