use super::*;
use crate::registry::types::{Field, ListKind, PatchRule, Scalar};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn field(ty: Type) -> Field {
    Field {
        ty,
        patch: PatchRule::default(),
        default: None,
    }
}

fn fields(fields: impl IntoIterator<Item = (&'static str, Type)>) -> Type {
    let fields: BTreeMap<_, _> = fields
        .into_iter()
        .map(|(name, ty)| (name.to_owned(), field(ty)))
        .collect();
    Type::Struct {
        fields,
        atomic: false,
        open: false,
    }
}

/// A small type with every kind of member.
fn sample() -> Type {
    let text = || Type::Scalar(Scalar::String);
    let item = fields([("name", text()), ("image", text())]);
    fields([
        (
            "data",
            Type::Map {
                value: Box::new(text()),
                atomic: false,
            },
        ),
        (
            "items",
            Type::List {
                item: Box::new(item),
                kind: ListKind::Map(vec!["name".into()]),
            },
        ),
        (
            "set",
            Type::List {
                item: Box::new(text()),
                kind: ListKind::Set,
            },
        ),
        (
            "list",
            Type::List {
                item: Box::new(text()),
                kind: ListKind::Atomic,
            },
        ),
    ])
}

fn writer(manager: &str) -> Writer<'_> {
    Writer {
        manager,
        api_version: "v1",
        subresource: "",
        now: Some("2030-01-01T00:00:00Z"),
    }
}

fn applied(live: &Value, config: &Value, managers: Managers, manager: &str) -> Applied {
    apply(live, config, &sample(), managers, &writer(manager), false).expect("no conflict")
}

#[test]
fn a_field_no_longer_applied_is_removed_unless_somebody_else_owns_it() {
    let first = applied(
        &json!({}),
        &json!({"data": {"a": "1", "b": "1"}}),
        Managers::default(),
        "one",
    );
    let both = applied(
        &first.object,
        &json!({"data": {"b": "1"}}),
        first.managers,
        "two",
    );
    let left = applied(&both.object, &json!({"data": {}}), both.managers, "one");
    assert_eq!(left.object, json!({"data": {"b": "1"}}));
}

#[test]
fn changing_what_another_owns_is_a_conflict_that_names_both() {
    let first = applied(
        &json!({}),
        &json!({"items": [{"name": "x", "image": "1"}]}),
        Managers::default(),
        "one",
    );
    let config = json!({"items": [{"name": "x", "image": "2"}]});
    let error = apply(
        &first.object,
        &config,
        &sample(),
        first.managers.clone(),
        &writer("two"),
        false,
    )
    .err()
    .unwrap();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"one\": .items[name=\"x\"].image"
    );
    let forced = apply(
        &first.object,
        &config,
        &sample(),
        first.managers,
        &writer("two"),
        true,
    )
    .unwrap();
    assert_eq!(forced.object, config);
}

#[test]
fn items_of_others_keep_their_place() {
    let first = applied(
        &json!({}),
        &json!({"set": ["a", "b", "c"]}),
        Managers::default(),
        "one",
    );
    let second = applied(
        &first.object,
        &json!({"set": ["c", "d"]}),
        first.managers,
        "two",
    );
    assert_eq!(second.object, json!({"set": ["a", "b", "c", "d"]}));
}

fn config() -> impl Strategy<Value = Value> {
    let text = "[xyz]{0,2}";
    let data = proptest::option::of(proptest::collection::btree_map("[abc]", text, 0..3));
    let items = proptest::option::of(proptest::collection::btree_map(
        "[pqr]",
        proptest::option::of(text),
        0..3,
    ));
    let set = proptest::option::of(proptest::collection::btree_set("[stu]", 0..3));
    let list = proptest::option::of(proptest::collection::vec("[lmn]", 0..3));
    (data, items, set, list).prop_map(|(data, items, set, list)| {
        let mut out = json!({});
        if let Some(data) = data {
            out["data"] = json!(data);
        }
        if let Some(items) = items {
            out["items"] = items
                .into_iter()
                .map(|(name, image)| match image {
                    Some(image) => json!({"name": name, "image": image}),
                    None => json!({"name": name}),
                })
                .collect();
        }
        if let Some(set) = set {
            out["set"] = json!(set);
        }
        if let Some(list) = list {
            out["list"] = json!(list);
        }
        out
    })
}

proptest! {
    #[test]
    fn applying_twice_changes_nothing(base in config(), intent in config()) {
        let ty = sample();
        let managers = record_update(&json!({}), &base, &ty, Managers::default(), &writer("updater"), &[]);
        let once = apply(&base, &intent, &ty, managers, &writer("applier"), true).unwrap();
        let twice = apply(&once.object, &intent, &ty, once.managers.clone(), &writer("applier"), false).unwrap();
        prop_assert_eq!(&twice.object, &once.object);
        prop_assert_eq!(twice.managers.write(), once.managers.write());
    }

    #[test]
    fn what_is_applied_is_there(base in config(), intent in config()) {
        let ty = sample();
        let managers = record_update(&json!({}), &base, &ty, Managers::default(), &writer("updater"), &[]);
        let done = apply(&base, &intent, &ty, managers, &writer("applier"), true).unwrap();
        prop_assert_eq!(typed::merge(&done.object, &intent, &ty), done.object);
    }

    #[test]
    fn one_applier_alone_gets_exactly_its_last_intent(first in config(), second in config()) {
        let ty = sample();
        let one = apply(&json!({}), &first, &ty, Managers::default(), &writer("a"), false).unwrap();
        let two = apply(&one.object, &second, &ty, one.managers, &writer("a"), false).unwrap();
        let direct = apply(&json!({}), &second, &ty, Managers::default(), &writer("a"), false).unwrap();
        prop_assert_eq!(two.managers.write(), direct.managers.write());
        // Empty containers may stay behind: nobody owns an empty keyed list.
        for path in typed::fields_of(&two.object, &ty).paths() {
            prop_assert!(typed::fields_of(&second, &ty).paths().contains(&path)
                || typed::fields_of(&first, &ty).paths().contains(&path), "leaked {}", show(&path));
        }
    }

    #[test]
    fn every_owned_field_exists(base in config(), first in config(), second in config()) {
        let ty = sample();
        let managers = record_update(&json!({}), &base, &ty, Managers::default(), &writer("updater"), &[]);
        let one = apply(&base, &first, &ty, managers, &writer("a"), true).unwrap();
        let two = apply(&one.object, &second, &ty, one.managers, &writer("b"), true).unwrap();
        let there = typed::compare(&json!({}), &two.object, &ty).added;
        for set in two.managers.sets() {
            // A claim on a container outlives the container's last member, as in Kubernetes.
            let containers = ["data", "items", "set", "list"].map(|name| format!(".{name}"));
            let missing: Vec<_> = set.difference(&there).paths().iter().map(|path| show(path)).filter(|path| !containers.contains(path)).collect();
            prop_assert!(missing.is_empty(), "owned but absent: {missing:?}");
        }
    }
}
