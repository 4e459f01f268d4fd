//! Managed fields: would an apply change anything?
//!
//! The server keeps, for every field manager, the set of fields it applied, as a tree: `f:name`
//! is a field, `k:{…}` an item of a list by its keys, `v:…` an item of a set, `.` the thing
//! itself, and an empty node a leaf. An apply changes nothing exactly when the intent names the
//! same fields as our tree and the live object has equal values in them. Following the tree the
//! server made avoids knowing any schema: it shows which lists are keyed and by what.
//!
//! Where the server rewrites values (a quantity in its canonical form), the comparison says
//! "changed" although the apply would be idle. It is then sent once and remembered with its
//! outcome ([`Memo`](crate::cache::Memo)).

use std::{
    hash::{BuildHasher, Hash, Hasher},
    sync::LazyLock,
};

use foldhash::quality::RandomState;
use serde_json::{Map, Value, json};

/// Whether applying `intent` would leave `live` as it is, given the fields we applied before.
pub(crate) fn unchanged(fields: &Value, intent: &Value, live: &Value) -> bool {
    compare(fields, intent, live, &Place::Top, &mut |_, _| false)
}

/// What applying `intent` would replace in `live`, as operations of a JSON patch: where it names
/// exactly the fields we applied before, and only values of them differ.
pub(crate) fn replacements(fields: &Value, intent: &Value, live: &Value) -> Option<Vec<Value>> {
    let mut operations = Vec::new();
    let same = compare(fields, intent, live, &Place::Top, &mut |place, value| {
        let path = place.pointer();
        operations.push(json!({"op": "replace", "path": path, "value": value}));
        true
    });
    same.then_some(operations)
}

/// Where a value stands in an object.
enum Place<'a> {
    Top,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// As a JSON pointer.
    fn pointer(&self) -> String {
        match self {
            Self::Top => String::new(),
            Self::Field(of, name) => {
                let name = name.replace('~', "~0").replace('/', "~1");
                format!("{}/{name}", of.pointer())
            }
            Self::Item(of, nth) => format!("{}/{nth}", of.pointer()),
        }
    }
}

/// Whether `intent` names exactly our fields, and `differs` agrees with each value that `live` has
/// otherwise.
fn compare(
    fields: &Value,
    intent: &Value,
    live: &Value,
    place: &Place<'_>,
    differs: &mut dyn FnMut(&Place<'_>, &Value) -> bool,
) -> bool {
    let Some(fields) = fields.as_object() else {
        return false;
    };
    if fields.keys().all(|step| step == ".") {
        return covers(live, intent) || differs(place, intent);
    }
    match intent {
        Value::Object(wanted) => {
            let all_known = wanted.iter().all(|(name, want)| {
                match (fields.get(&format!("f:{name}")), live.get(name)) {
                    (Some(known), Some(have)) => {
                        compare(known, want, have, &Place::Field(place, name), differs)
                    }
                    // Ours and yet not there: the server does not write what is zero.
                    (Some(_), None) => is_zero(want),
                    (None, _) => false,
                }
            });
            all_known && field_names(fields).all(|name| wanted.contains_key(name))
        }
        Value::Array(wanted) => {
            let steps = || fields.iter().filter(|(step, _)| *step != ".");
            steps().count() == wanted.len()
                && steps().all(|(step, known)| {
                    compare_item(step, known, wanted, live, place, &mut *differs)
                })
        }
        _ => false,
    }
}

/// Whether an intent names each of our fields.
pub(crate) fn names_all(fields: &Value, intent: &Value) -> bool {
    let Some(fields) = fields.as_object() else {
        return true;
    };
    fields.iter().all(|(step, below)| {
        if step == "." {
            return true;
        }
        let named = if let Some(name) = step.strip_prefix("f:") {
            intent.get(name)
        } else {
            let items = intent.as_array().map(Vec::as_slice).unwrap_or_default();
            match (keys_of(step), value_of(step)) {
                (Some(keys), _) => find(items, &keys),
                (None, value) => items.iter().find(|item| Some(*item) == value.as_ref()),
            }
        };
        named.is_some_and(|named| {
            // The keys of an item are named by what the server fills in, too.
            let keys = keys_of(step).unwrap_or_default();
            let mut named = named.clone();
            if let Some(named) = named.as_object_mut() {
                for (key, value) in keys {
                    named.entry(key).or_insert(value);
                }
            }
            names_all(below, &named)
        })
    })
}

/// The fields of two managers together.
pub(crate) fn union(mut fields: Value, more: Value) -> Value {
    if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
        for (step, below) in more {
            let both = match fields.remove(&step) {
                Some(known) => union(known, below),
                None => below,
            };
            fields.insert(step, both);
        }
    }
    fields
}

/// Whether a value that is owned as a whole is what was asked for. What is there besides are the
/// server's defaults: had somebody else changed it, it would not be ours any more.
fn covers(live: &Value, intent: &Value) -> bool {
    match (live, intent) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(name, want)| match live.get(name) {
                Some(have) => covers(have, want),
                None => is_zero(want),
            })
        }
        (Value::Array(live), Value::Array(wanted)) => {
            let pairs = live.iter().zip(wanted);
            live.len() == wanted.len() && pairs.clone().all(|(have, want)| covers(have, want))
        }
        _ => live == intent,
    }
}

/// What Go leaves out when it writes a field that may be empty.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn compare_item(
    step: &str,
    known: &Value,
    wanted: &[Value],
    live: &Value,
    place: &Place<'_>,
    differs: &mut dyn FnMut(&Place<'_>, &Value) -> bool,
) -> bool {
    let Some(live) = live.as_array() else {
        return false;
    };
    if let Some(keys) = keys_of(step) {
        let at = position(live, &keys);
        let Some((want, at)) = find(wanted, &keys).zip(at) else {
            return false;
        };
        let Some(have) = live.get(at) else {
            return false;
        };
        // A key that the server defaulted is part of the item's identity, not of the intent.
        let mut want = want.clone();
        for (key, value) in keys {
            let named = known.get(format!("f:{key}")).is_some();
            if let Some(want) = want.as_object_mut().filter(|_| named) {
                want.entry(key).or_insert(value);
            }
        }
        return compare(known, &want, have, &Place::Item(place, at), differs);
    }
    value_of(step).is_some_and(|value| wanted.contains(&value) && live.contains(&value))
}

/// A number that changes when our fields, or their values in the live object, change.
pub(crate) fn outcome(fields: &Value, live: &Value) -> u64 {
    let mut hasher = hasher();
    project(fields, Some(live), &mut hasher);
    hasher.finish()
}

/// A number that changes when a value changes.
pub(crate) fn fingerprint(value: &Value) -> u64 {
    let mut hasher = hasher();
    hash(value, &mut hasher);
    hasher.finish()
}

/// Hashes in the same way as long as the process lives. Small pieces are what there is to hash, and
/// the hasher of the standard library takes several times as long for them.
pub(crate) fn hasher() -> impl Hasher {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);
    SEED.build_hasher()
}

fn project(fields: &Value, live: Option<&Value>, into: &mut impl Hasher) {
    let Some(fields) = fields.as_object() else {
        return;
    };
    if fields.keys().all(|step| step == ".") {
        hash(live.unwrap_or(&Value::Null), into);
        return;
    }
    in_order(fields, |step, below| {
        if step == "." {
            return;
        }
        step.hash(into);
        let items = || live.and_then(Value::as_array);
        if let Some(name) = step.strip_prefix("f:") {
            project(below, live.and_then(|live| live.get(name)), into);
        } else if let Some(keys) = keys_of(step) {
            project(below, items().and_then(|items| find(items, &keys)), into);
        } else if let Some(value) = value_of(step) {
            items()
                .is_some_and(|items| items.contains(&value))
                .hash(into);
        }
    });
}

/// Hashes in the order of keys, so that equal values hash equally however they were written.
fn hash(value: &Value, into: &mut impl Hasher) {
    match value {
        Value::Object(map) => {
            (b'o', map.len()).hash(into);
            in_order(map, |key, value| {
                key.hash(into);
                hash(value, into);
            });
        }
        Value::Array(items) => {
            (b'a', items.len()).hash(into);
            for item in items {
                hash(item, into);
            }
        }
        Value::String(text) => (b's', text).hash(into),
        Value::Number(number) => (b'n', number).hash(into),
        Value::Bool(value) => (b'b', value).hash(into),
        Value::Null => b'0'.hash(into),
    }
}

/// Visits the entries of a map by key, whether or not the map keeps them so.
fn in_order<'a>(map: &'a Map<String, Value>, mut visit: impl FnMut(&'a String, &'a Value)) {
    if map.keys().is_sorted() {
        map.iter().for_each(|(key, value)| visit(key, value));
        return;
    }
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    for (key, value) in entries {
        visit(key, value);
    }
}

fn field_names(fields: &Map<String, Value>) -> impl Iterator<Item = &str> {
    fields.keys().filter_map(|step| step.strip_prefix("f:"))
}

fn keys_of(step: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(step.strip_prefix("k:")?).ok()
}

fn value_of(step: &str) -> Option<Value> {
    serde_json::from_str(step.strip_prefix("v:")?).ok()
}

/// The item with these keys; one that leaves a key to its default counts if none has them all.
fn find<'a>(items: &'a [Value], keys: &Map<String, Value>) -> Option<&'a Value> {
    items.get(position(items, keys)?)
}

fn position(items: &[Value], keys: &Map<String, Value>) -> Option<usize> {
    let exact = |item: &Value| keys.iter().all(|(key, value)| item.get(key) == Some(value));
    let defaulted = |item: &Value| {
        keys.iter()
            .all(|(key, value)| item.get(key).is_none_or(|have| have == value))
    };
    let place = items.iter().position(exact);
    place.or_else(|| items.iter().position(defaulted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields() -> Value {
        json!({
            "f:metadata": {
                "f:labels": {"f:app": {}},
                "f:ownerReferences": {r#"k:{"uid":"u"}"#: {}},
            },
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:ports": {
                    r#"k:{"containerPort":11211,"protocol":"TCP"}"#: {".": {}, "f:containerPort": {}, "f:name": {}},
                },
                "f:finalizers": {".": {}, r#"v:"a""#: {}},
            },
        })
    }

    fn intent() -> Value {
        json!({
            "metadata": {"labels": {"app": "x"}, "ownerReferences": [{"uid": "u", "name": "o"}]},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "x"}},
                "ports": [{"containerPort": 11211, "name": "m"}],
                "finalizers": ["a"],
            },
        })
    }

    fn live() -> Value {
        json!({
            "metadata": {
                "name": "n",
                "labels": {"app": "x", "other": "y"},
                "ownerReferences": [{"uid": "u", "name": "o"}, {"uid": "v", "name": "p"}],
            },
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "x"}},
                "ports": [{"containerPort": 1, "protocol": "TCP"},
                          {"containerPort": 11211, "name": "m", "protocol": "TCP"}],
                "finalizers": ["a", "b"],
                "paused": false,
            },
        })
    }

    #[test]
    fn what_others_set_does_not_matter() {
        assert!(unchanged(&fields(), &intent(), &live()));
    }

    #[test]
    fn a_changed_value_is_a_change() {
        for (path, value) in [
            ("/spec/replicas", json!(4)),
            ("/spec/selector/matchLabels/app", json!("z")),
            ("/spec/ports/1/name", json!("z")),
            ("/spec/finalizers", json!(["b"])),
            ("/metadata/ownerReferences/0/name", json!("z")),
        ] {
            let mut live = live();
            *live.pointer_mut(path).unwrap() = value;
            assert!(!unchanged(&fields(), &intent(), &live), "{path}");
        }
    }

    #[test]
    fn a_field_no_longer_given_is_a_change() {
        let mut intent = intent();
        intent["spec"].as_object_mut().unwrap().remove("replicas");
        assert!(!unchanged(&fields(), &intent, &live()));
        let mut intent = self::intent();
        intent["spec"]["finalizers"] = json!([]);
        assert!(!unchanged(&fields(), &intent, &live()));
    }

    #[test]
    fn a_field_newly_given_is_a_change_even_if_the_value_is_there() {
        let mut intent = intent();
        intent["spec"]["paused"] = json!(false);
        assert!(!unchanged(&fields(), &intent, &live()));
        let mut intent = self::intent();
        intent["spec"]["ports"][0]["protocol"] = json!("TCP");
        assert!(!unchanged(&fields(), &intent, &live()));
    }

    #[test]
    fn what_the_server_leaves_out_or_adds_is_no_change() {
        let fields = json!({"f:spec": {"f:hostNetwork": {}, "f:sources": {}, "f:name": {}}});
        let intent = json!({"spec": {
            "hostNetwork": false, "name": "n", "sources": [{"path": "p", "optional": false}],
        }});
        let live = json!({"spec": {"name": "n", "sources": [{"path": "p", "mode": 420}]}});
        assert!(unchanged(&fields, &intent, &live));
        let mut wanted = intent.clone();
        wanted["spec"]["hostNetwork"] = json!(true);
        assert!(!unchanged(&fields, &wanted, &live));
        let mut other = live.clone();
        other["spec"]["sources"][0]["path"] = json!("q");
        assert!(!unchanged(&fields, &intent, &other));
    }

    #[test]
    fn changed_values_are_replacements_and_other_changes_are_not() {
        let mut intent = intent();
        intent["metadata"]["labels"]["app"] = json!("z");
        intent["spec"]["replicas"] = json!(4);
        intent["spec"]["ports"][0]["name"] = json!("web");
        let replaced =
            |path: &str, value: Value| json!({"op": "replace", "path": path, "value": value});
        let operations = replacements(&fields(), &intent, &live()).unwrap();
        let expected = [
            replaced("/metadata/labels/app", json!("z")),
            replaced("/spec/ports/1/name", json!("web")),
            replaced("/spec/replicas", json!(4)),
        ];
        assert_eq!(operations.len(), expected.len());
        assert!(
            expected.iter().all(|one| operations.contains(one)),
            "{operations:?}"
        );
        // What is ours as a whole is replaced as a whole.
        intent["spec"]["selector"] = json!({"matchLabels": {"app": "z"}});
        let operations = replacements(&fields(), &intent, &live()).unwrap();
        let selector = replaced("/spec/selector", intent["spec"]["selector"].clone());
        assert!(operations.contains(&selector), "{operations:?}");

        let mut more = intent.clone();
        more["spec"]["paused"] = json!(true);
        assert_eq!(replacements(&fields(), &more, &live()), None);
        let mut less = intent.clone();
        less["spec"].as_object_mut().unwrap().remove("replicas");
        assert_eq!(replacements(&fields(), &less, &live()), None);
        let mut gone = live();
        gone["spec"].as_object_mut().unwrap().remove("replicas");
        assert_eq!(replacements(&fields(), &intent, &gone), None);
        let mut item = intent.clone();
        item["spec"]["ports"][0]["containerPort"] = json!(2);
        assert_eq!(replacements(&fields(), &item, &live()), None);
    }

    #[test]
    fn names_of_fields_are_escaped_in_a_patch() {
        let fields = json!({"f:metadata": {"f:labels": {"f:a.b/c~d": {}}}});
        let labelled = |value: &str| json!({"metadata": {"labels": {"a.b/c~d": value}}});
        let operations = replacements(&fields, &labelled("2"), &labelled("1")).unwrap();
        assert_eq!(operations[0]["path"], "/metadata/labels/a.b~1c~0d");
    }

    #[test]
    fn intent_that_leaves_out_a_field_does_not_name_all() {
        assert!(names_all(&fields(), &intent()));
        let mut more = intent();
        more["spec"]["paused"] = json!(true);
        assert!(names_all(&fields(), &more));
        for path in [
            "/spec/replicas",
            "/spec/ports/0/name",
            "/metadata/labels/app",
        ] {
            let mut less = intent();
            let (parent, name) = path.rsplit_once('/').unwrap();
            let parent = less.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            parent.remove(name).unwrap();
            assert!(!names_all(&fields(), &less), "{path}");
        }
        let mut less = intent();
        less["spec"]["finalizers"] = json!([]);
        assert!(!names_all(&fields(), &less));
    }

    #[test]
    fn union_has_the_fields_of_both() {
        let one = json!({"f:spec": {"f:a": {}, "f:b": {".": {}, "f:c": {}}}});
        let other = json!({"f:spec": {"f:b": {"f:d": {}}}, "f:data": {"f:e": {}}});
        let both = json!({
            "f:spec": {"f:a": {}, "f:b": {".": {}, "f:c": {}, "f:d": {}}},
            "f:data": {"f:e": {}},
        });
        assert_eq!(union(one, other), both);
    }

    #[test]
    fn the_outcome_ignores_what_others_set() {
        let before = outcome(&fields(), &live());
        let mut after = live();
        after["spec"]["paused"] = json!(true);
        after["metadata"]["labels"]["other"] = json!("z");
        assert_eq!(before, outcome(&fields(), &after));
        after["spec"]["replicas"] = json!(4);
        assert_ne!(before, outcome(&fields(), &after));
        assert_ne!(before, outcome(&json!({}), &live()));
    }
}
