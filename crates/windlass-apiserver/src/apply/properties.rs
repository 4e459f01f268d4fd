//! What must hold of every apply, whatever is applied.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::fieldset::FieldSet;
use super::path::PathElement;
use super::{Managers, Writer, apply, record_update, typed};
use crate::registry::types::Type;

/// A pod template has every sort of list and map: by key, of values, atomic, granular.
fn ty() -> Type {
    Type::Named("io.k8s.api.core.v1.PodTemplateSpec".into())
}

fn config() -> impl Strategy<Value = Value> {
    let labels = proptest::collection::btree_map("[a-c]", "[x-z]", 0..3);
    let finalizers = proptest::collection::btree_set("example.com/[a-c]", 0..3);
    let env = proptest::collection::btree_map("[A-C]", "[1-3]", 0..3);
    let container = ("[p-r]", proptest::option::of("i:[1-2]"), env);
    let containers = proptest::collection::btree_map("[p-r]", container, 0..3);
    let args = proptest::option::of(proptest::collection::vec("[a-b]", 0..3));
    (labels, finalizers, containers, args).prop_map(|(labels, finalizers, containers, args)| {
        let mut object = Map::new();
        let mut metadata = Map::new();
        if !labels.is_empty() {
            metadata.insert("labels".into(), json!(labels));
        }
        if !finalizers.is_empty() {
            metadata.insert("finalizers".into(), json!(finalizers));
        }
        if !metadata.is_empty() {
            object.insert("metadata".into(), metadata.into());
        }
        let containers: Vec<Value> = containers
            .into_iter()
            .map(|(name, (_, image, env))| {
                let mut container = json!({"name": name});
                if let Some(image) = image {
                    container["image"] = image.into();
                }
                if !env.is_empty() {
                    let entry = |(name, value)| json!({"name": name, "value": value});
                    container["env"] = env.into_iter().map(entry).collect();
                }
                if let Some(args) = &args {
                    container["args"] = json!(args);
                }
                container
            })
            .collect();
        if !containers.is_empty() {
            object.insert("spec".into(), json!({"containers": containers}));
        }
        Value::Object(object)
    })
}

/// A write: who, what, and whether as an apply.
fn writes() -> impl Strategy<Value = Vec<(String, Value, bool)>> {
    proptest::collection::vec(("[m-o]", config(), any::<bool>()), 1..8)
}

fn writer(manager: &str) -> Writer<'_> {
    Writer {
        manager,
        api_version: "v1",
        subresource: "",
        now: Some("2026-01-01T00:00:00Z"),
    }
}

/// Plays the writes; gives the object and who owns what.
fn played(writes: &[(String, Value, bool)]) -> (Value, Managers) {
    let (mut live, mut managers) = (json!({}), Managers::default());
    for (manager, config, applies) in writes {
        if *applies {
            let applied = apply(&live, config, &ty(), managers, &writer(manager), true);
            let applied = applied.expect("a forced apply has no conflict");
            (live, managers) = (applied.object, applied.managers);
        } else {
            managers = record_update(&live, config, &ty(), managers, &writer(manager), &[]);
            live = config.clone();
        }
    }
    (live, managers)
}

fn owned(managers: &Managers) -> FieldSet {
    let sets = managers.sets().cloned();
    sets.fold(FieldSet::default(), FieldSet::union)
}

/// Who claimed a map or list that was emptied since keeps its claim to it, as in Kubernetes.
fn is_container(path: &[PathElement]) -> bool {
    let containers = [
        "metadata",
        "labels",
        "finalizers",
        "spec",
        "containers",
        "env",
    ];
    matches!(path.last(), Some(PathElement::Field(name)) if containers.contains(&name.as_str()))
}

proptest! {
    #[test]
    fn applying_twice_changes_nothing(writes in writes(), last in config()) {
        let (live, managers) = played(&writes);
        let once = apply(&live, &last, &ty(), managers, &writer("z"), true).unwrap();
        let fields = once.managers.write();
        let twice =
            apply(&once.object, &last, &ty(), once.managers, &writer("z"), false).unwrap();
        prop_assert_eq!(&twice.object, &once.object);
        prop_assert_eq!(twice.managers.write(), fields);
    }

    #[test]
    fn ownership_never_leaks(writes in writes()) {
        let (live, managers) = played(&writes);
        // What somebody owns is there…
        let there = typed::fields_of(&live, &ty());
        let mut gone = owned(&managers).difference(&there).paths();
        gone.retain(|path| !is_container(path));
        prop_assert!(gone.is_empty(), "owned but gone: {gone:?} in {live}");
        // … and who applied last owns exactly what it applied.
        if let Some((manager, config, true)) = writes.last() {
            let wanted = typed::fields_of(config, &ty());
            let entries = managers.write();
            let own = entries.as_array().into_iter().flatten().find(|entry| {
                entry["manager"] == *manager && entry["operation"] == "Apply"
            });
            let own = own.map_or_else(FieldSet::default, |entry| {
                FieldSet::from_fields_v1(&entry["fieldsV1"]).unwrap()
            });
            prop_assert_eq!(own.paths(), wanted.paths());
        }
    }
}
