//! Strategic merge patch: a merge patch that knows which lists are merged and by what key.
//!
//! Directives ride in the patch: `$patch` (replace, delete, merge), `$retainKeys`,
//! `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::go;
use crate::registry::types::Type;
use crate::status::{ApiError, Result};
use crate::steps::step;

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
    merge_maps(object.clone(), patch.clone(), ty).map(Value::Object)
}

fn merge_maps(
    mut object: Map<String, Value>,
    mut patch: Map<String, Value>,
    ty: &Type,
) -> Result<Map<String, Value>> {
    step();
    match patch.get(PATCH) {
        None => {}
        Some(directive) if directive == "replace" => {
            patch.remove(PATCH);
            return Ok(patch);
        }
        Some(directive) if directive == "delete" => return Ok(Map::new()),
        Some(directive) => return Err(unknown_directive(directive, &patch)),
    }
    if let Some(retained) = patch.remove(RETAIN_KEYS) {
        retain_keys(&mut object, &patch, &retained)?;
    }
    merge_ordered_lists(&mut object, &mut patch, ty)?;
    for (key, value) in patch {
        if let Some(field) = key.strip_prefix(DELETE_FROM) {
            if let (Some(Value::Array(items)), Value::Array(gone)) = (object.get_mut(field), value)
            {
                element_sort(items, &gone)?;
                let gone = Places::of(&gone, None);
                items.retain(|item| gone.of_item(item).is_none());
            }
            continue;
        }
        if value.is_null() {
            object.remove(&key);
            continue;
        }
        let replace = ty.field(&key).is_some_and(|field| field.patch.replace);
        let merged = match (object.remove(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) if !replace => {
                Some(Value::Object(merge_maps(old, new, ty.member(&key))?))
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                Some(Value::Array(merge_lists(old, new, &Rule::of(ty, &key))?))
            }
            (_, new) => on_its_own(new),
        };
        if let Some(merged) = merged {
            object.insert(key, merged);
        }
    }
    Ok(object)
}

/// Drops what `$retainKeys` does not list; the patch may set nothing else.
fn retain_keys(
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    retained: &Value,
) -> Result<()> {
    let malformed = || ApiError::bad_request("invalid patch format of retainKeys");
    let retained = retained.as_array().ok_or_else(malformed)?;
    let retained: BTreeSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let keeps = |key: &str| retained.contains(key);
    let is_directive = |key: &str| key.starts_with(DELETE_FROM) || key.starts_with(ELEMENT_ORDER);
    let sets = |(key, value): (&String, &Value)| !value.is_null() && !is_directive(key);
    if patch
        .iter()
        .any(|(key, value)| sets((key, value)) && !keeps(key))
    {
        return Err(malformed());
    }
    object.retain(|key, _| keeps(key));
    Ok(())
}

/// Merges the lists for which the patch has a `$setElementOrder`, and takes them out of the patch.
fn merge_ordered_lists(
    object: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    ty: &Type,
) -> Result<()> {
    let is_order = |key: &&String| key.starts_with(ELEMENT_ORDER);
    let orders: Vec<String> = patch.keys().filter(is_order).cloned().collect();
    for directive in orders {
        let (Some(order), Some(field)) = (
            patch.remove(&directive),
            directive.strip_prefix(ELEMENT_ORDER),
        ) else {
            continue;
        };
        let order = list_of(order)?;
        let rule = Rule::of(ty, field);
        let old = object.get(field).cloned().map(list_of).transpose()?;
        let new = patch.remove(field).map(list_of).transpose()?;
        check_order(new.as_deref().unwrap_or_default(), &order, rule.key)?;
        let before = old.clone().unwrap_or_default();
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(on_its_own).collect(),
            (Some(old), Some(new)) => merge_lists(old, new, &rule)?,
        };
        if merged.is_empty() {
            return Err(ApiError::without_reason(
                "no elements in any of the given slices",
            ));
        }
        let ordered = in_order(&merged, &order, &before, rule.key);
        object.insert(field.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

fn list_of(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(bad_type("[]interface {}", &other)),
    }
}

/// What the patch sets must stand in `$setElementOrder`, in the same order.
fn check_order(patch: &[Value], order: &[Value], merge_key: Option<&str>) -> Result<()> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let mut ordered = order.iter();
    for item in patch {
        if let Some(key) = merge_key {
            let map = item
                .as_object()
                .ok_or_else(|| bad_type("map[string]interface {}", item))?;
            if map.contains_key(PATCH) {
                continue;
            }
            if !map.contains_key(key) {
                return Err(no_merge_key(item, key));
            }
        }
        let same =
            |listed: &Value| merge_key.map_or(item == listed, |key| item[key] == listed[key]);
        if !ordered.any(same) {
            let shown = |list: &[Value]| go::plus_v(&Value::from(list));
            return Err(ApiError::without_reason(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                shown(patch),
                shown(order)
            )));
        }
    }
    Ok(())
}

/// A part of the patch that meets nothing to be merged with: taken as it is, but for nulls and
/// for maps that hold a directive, which have nothing to direct.
fn on_its_own(patch: Value) -> Option<Value> {
    match patch {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter()
                .filter(|(_, value)| !value.is_null())
                .filter_map(|(key, value)| Some((key, on_its_own(value)?)))
                .collect(),
        )),
        Value::Array(items) => Some(items.into_iter().filter_map(on_its_own).collect()),
        other => Some(other),
    }
}

/// How a list is merged.
struct Rule<'a> {
    merge: bool,
    /// What tells its elements apart, if they are maps.
    key: Option<&'a str>,
    item: &'a Type,
}

impl<'a> Rule<'a> {
    fn of(ty: &'a Type, field: &str) -> Self {
        let rule = ty.field(field).map(|field| &field.patch);
        Self {
            merge: rule.is_some_and(|rule| rule.merge),
            key: rule.and_then(|rule| rule.merge_key.as_deref()),
            item: ty.member(field).item(),
        }
    }
}

fn merge_lists(old: Vec<Value>, new: Vec<Value>, rule: &Rule<'_>) -> Result<Vec<Value>> {
    if !rule.merge {
        return Ok(new);
    }
    let Some(sort) = element_sort(&old, &new)? else {
        return Ok(old);
    };
    if sort != Sort::Map {
        let mut merged: Vec<Value> = Vec::with_capacity(old.len() + new.len());
        let mut known = Places::of(&[], None);
        for item in old.iter().chain(&new) {
            if known.add(item) {
                merged.push(item.clone());
            }
        }
        return Ok(in_order(&merged, &new, &old, None));
    }
    let Some(key) = rule.key else {
        return Err(ApiError::without_reason(
            "cannot merge lists without merge key",
        ));
    };
    let (before, new) = direct(old, new, key)?;
    let mut merged = before.clone();
    let mut places = Places::of(&before, Some(key));
    for item in &new {
        step();
        let fields = item.as_object().cloned().unwrap_or_default();
        if !fields.contains_key(key) {
            return Err(no_merge_key(item, key));
        }
        if let Some(at) = places.of_item(item) {
            let known = match std::mem::take(&mut merged[at]) {
                Value::Object(known) => known,
                _ => Map::new(),
            };
            merged[at] = Value::Object(merge_maps(known, fields, rule.item)?);
        } else {
            places.add(item);
            merged.push(item.clone());
        }
    }
    Ok(in_order(&merged, &new, &before, Some(key)))
}

/// Does what the elements with a directive say: what is left of the list, and of the patch.
fn direct(mut old: Vec<Value>, new: Vec<Value>, key: &str) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut plain = Vec::with_capacity(new.len());
    let mut deleted = BTreeSet::new();
    let mut replace = false;
    for item in new {
        let Some(directive) = item.get(PATCH) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let Some(value) = item.get(key) else {
                    return Err(no_merge_key(&item, key));
                };
                deleted.insert(value.to_string());
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(ApiError::without_reason(
                    "merging lists cannot yet be specified in the patch",
                ));
            }
            _ => {
                let map = item.as_object().cloned().unwrap_or_default();
                return Err(unknown_directive(directive, &map));
            }
        }
    }
    if !deleted.is_empty() {
        old.retain(|known| {
            let value = known.get(key).map(Value::to_string);
            value.is_none_or(|value| !deleted.contains(&value))
        });
    }
    if replace {
        return Ok((plain, Vec::new()));
    }
    Ok((old, plain))
}

/// What the elements of a list are, to Go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Map,
    Scalar(&'static str),
}

/// The one sort of all elements of two lists; none when there are no elements.
fn element_sort(old: &[Value], new: &[Value]) -> Result<Option<Sort>> {
    let mut sort = None;
    for item in old.iter().chain(new) {
        let found = match item {
            Value::Array(_) => return Err(super::rejected()),
            Value::Object(_) => Sort::Map,
            scalar => Sort::Scalar(go::reflected(scalar)),
        };
        if sort.is_some_and(|known| known != found) {
            let lists = Value::from(vec![Value::from(old), Value::from(new)]);
            return Err(ApiError::without_reason(format!(
                "list element types are not identical: {}",
                go::plus_v(&lists)
            )));
        }
        sort = Some(found);
    }
    Ok(sort)
}

fn unknown_directive(directive: &Value, map: &Map<String, Value>) -> ApiError {
    let shown = directive.as_str().map_or_else(
        || {
            format!(
                "%!s({}={})",
                go::reflected(directive),
                go::plus_v(directive)
            )
        },
        str::to_owned,
    );
    ApiError::without_reason(format!(
        "unknown patch type: {shown} in map: {}",
        go::plus_v(&Value::Object(map.clone()))
    ))
}

fn no_merge_key(item: &Value, key: &str) -> ApiError {
    ApiError::without_reason(format!(
        "map: {} does not contain declared merge key: {key}",
        go::plus_v(item)
    ))
}

fn bad_type(wanted: &str, found: &Value) -> ApiError {
    ApiError::without_reason(format!(
        "expected a {wanted}, but received a {}",
        go::reflected(found)
    ))
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
    let (in_order, before) = (Places::of(order, merge_key), Places::of(before, merge_key));
    let (mut named, mut others): (Vec<_>, Vec<_>) = items
        .iter()
        .map(|item| (in_order.of_item(item), before.of_item(item), item))
        .partition(|(named, _, _)| named.is_some());
    named.sort_by_key(|(place, _, _)| *place);
    others.sort_by_key(|(_, place, _)| *place);
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut out = Vec::with_capacity(items.len());
    loop {
        let stays_in_front = match (others.peek(), named.peek()) {
            (None, None) => return out,
            (None, Some(_)) => false,
            (Some(_), None) => true,
            (Some((_, other, _)), Some((_, next, _))) => {
                matches!((other, next), (Some(other), Some(next)) if other < next)
            }
        };
        let next = if stays_in_front {
            others.next()
        } else {
            named.next()
        };
        out.extend(next.map(|(_, _, item)| item.clone()));
    }
}

/// Where each item of a list stands first: items are found by their merge key, or as a whole.
/// Looking through the list for each would be quadratic.
#[derive(Default)]
struct Places<'k> {
    key: Option<&'k str>,
    first: BTreeMap<String, usize>,
    count: usize,
}

impl<'k> Places<'k> {
    fn of(list: &[Value], key: Option<&'k str>) -> Self {
        let mut places = Self {
            key,
            ..Self::default()
        };
        for item in list {
            places.add(item);
        }
        places
    }

    /// Takes in the next item; tells whether it is the first of its key.
    fn add(&mut self, item: &Value) -> bool {
        step();
        let place = self.count;
        self.count += 1;
        match self.first.entry(self.identity(item)) {
            Entry::Vacant(vacant) => {
                vacant.insert(place);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    fn of_item(&self, item: &Value) -> Option<usize> {
        self.first.get(&self.identity(item)).copied()
    }

    fn identity(&self, item: &Value) -> String {
        // The text of a value is canonical: its fields are sorted.
        self.key.map_or(item, |key| &item[key]).to_string()
    }
}

#[cfg(test)]
mod tests;
