//! The rules of `metadata` that are the same for every kind.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::field::{self, Cause};
use crate::go;
use crate::names;
use crate::object::finalizers;

/// Finalizers that need no domain.
const STANDARD_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];
/// All annotations of an object together, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// What holds for every object, old or new.
pub fn common_causes(object: &Value) -> Vec<Cause> {
    let mut causes = described_causes(object);
    for finalizer in finalizers(object) {
        let wrong = names::qualified_errors(finalizer);
        causes.extend(invalid("metadata.finalizers", finalizer, wrong));
    }
    causes
}

/// What holds for labels, annotations and owners.
fn described_causes(object: &Value) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let mut causes = Vec::new();
    let none = Map::new();
    let map = |field: &str| metadata[field].as_object().unwrap_or(&none);
    for (key, value) in map("labels") {
        let value = value.as_str().unwrap_or_default();
        causes.extend(invalid(
            "metadata.labels",
            key,
            names::qualified_errors(key),
        ));
        let wrong = names::label_value_errors(value);
        causes.extend(invalid("metadata.labels", value, wrong));
    }
    let mut size = 0;
    for (key, value) in map("annotations") {
        size += key.len() + value.as_str().map_or(0, str::len);
        let wrong = names::qualified_errors(&key.to_lowercase());
        causes.extend(invalid("metadata.annotations", key, wrong));
    }
    if size > ANNOTATIONS_LIMIT {
        causes.push(field::too_long(
            "metadata.annotations",
            ANNOTATIONS_LIMIT as u64,
        ));
    }
    owner_causes(object, &mut causes);
    causes
}

/// What an update of metadata may not do.
pub fn update_causes(new: &Value, old: &Value) -> Vec<Cause> {
    let (before, after) = (&old["metadata"], &new["metadata"]);
    let mut causes = Vec::new();
    if old["metadata"]["deletionTimestamp"].is_string() {
        causes.extend(late_finalizers(new, old));
    }
    for part in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if after.get(part) != before.get(part) {
            causes.push(field::invalid(
                format!("metadata.{part}"),
                &after[part],
                "field is immutable",
            ));
        }
    }
    causes.extend(described_causes(new));
    causes
}

/// One cause for each thing that is wrong with a value.
pub fn invalid(
    path: &'static str,
    value: &str,
    wrong: Vec<String>,
) -> impl Iterator<Item = Cause> + use<> {
    let value = Value::from(value);
    wrong
        .into_iter()
        .map(move |why| field::invalid(path, &value, &why))
}

/// Built-in kinds want a domain in the name of a finalizer that is not Kubernetes' own.
pub fn finalizer_causes(object: &Value) -> impl Iterator<Item = Cause> + '_ {
    let named = finalizers(object).into_iter().enumerate();
    named
        .filter(|(_, name)| !name.contains('/') && !STANDARD_FINALIZERS.contains(name))
        .map(|(index, name)| {
            field::invalid(
                format!("metadata.finalizers[{index}]"),
                &name.into(),
                "name is neither a standard finalizer name nor is it fully qualified",
            )
        })
}

/// Nothing may be added to the finalizers of an object that is going away.
fn late_finalizers(new: &Value, old: &Value) -> Option<Cause> {
    let before: BTreeSet<&str> = finalizers(old).into_iter().collect();
    let mut added: Vec<String> = finalizers(new)
        .into_iter()
        .filter(|finalizer| !before.contains(finalizer))
        .map(|finalizer| format!("{finalizer:?}"))
        .collect();
    added.sort();
    added.dedup();
    (!added.is_empty()).then(|| {
        field::forbidden(
            "metadata.finalizers",
            &format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            ),
        )
    })
}

fn owner_causes(object: &Value, causes: &mut Vec<Cause>) {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let mut controller: Option<String> = None;
    for owner in owners.into_iter().flatten() {
        for (part, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[part].as_str().is_none_or(str::is_empty) {
                let path = format!("metadata.ownerReferences.{part}");
                causes.push(field::invalid(path, &"".into(), why));
            }
        }
        if owner["apiVersion"] == "v1" && owner["kind"] == "Event" {
            causes.push(field::invalid_shown(
                "metadata.ownerReferences",
                &go::owner_json(owner),
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner["controller"] == true {
            let text = |part: &str| owner[part].as_str().unwrap_or_default();
            let this = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => causes.push(field::invalid_shown(
                    "metadata.ownerReferences",
                    &go::owners_json(owners.map_or(&[], Vec::as_slice)),
                    &format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    ),
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_terminating_object_gets_no_new_finalizers() {
        let old = json!({"metadata": {"deletionTimestamp": "t", "finalizers": ["a/b"]}});
        let new = json!({"metadata": {"deletionTimestamp": "t", "finalizers": ["a/b", "c/d"]}});
        let causes = update_causes(&new, &old);
        assert_eq!(causes.len(), 1);
        assert!(
            causes[0].message.ends_with("[]string{\"c/d\"}"),
            "{causes:?}"
        );
        assert!(update_causes(&old, &new).is_empty());
    }

    #[test]
    fn one_controller_at_most() {
        let owner = |name: &str| json!({"apiVersion": "v1", "kind": "K", "name": name, "uid": "u", "controller": true});
        let object = json!({"metadata": {"ownerReferences": [owner("a"), owner("b")]}});
        let causes = common_causes(&object);
        assert_eq!(causes.len(), 1);
        assert!(causes[0].message.contains("for K/a and K/b"), "{causes:?}");
    }
}
