//! What must hold of every definition and every object.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::schema::Schema;
use super::*;

#[test]
fn versions_are_ordered_as_kubernetes_orders_them() {
    let mut versions = vec![
        "foo1",
        "v1alpha1",
        "v2",
        "v1beta2",
        "v1",
        "v11alpha2",
        "v1beta1",
        "bar",
    ];
    versions.sort_by(|a, b| compare_versions(a, b));
    assert_eq!(
        versions,
        [
            "v2",
            "v1",
            "v1beta2",
            "v1beta1",
            "v11alpha2",
            "v1alpha1",
            "bar",
            "foo1"
        ]
    );
}

const NAMES: [&str; 4] = ["a", "b", "c-d", "in"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "maxLength": 2, "default": "x"})),
        Just(json!({"type": "string", "pattern": "^x", "nullable": true})),
        Just(json!({"type": "string", "format": "date-time"})),
        Just(json!({"type": "integer", "minimum": 0, "default": 1})),
        Just(json!({"type": "number", "multipleOf": 0.5})),
        Just(json!({"type": "boolean"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"type": "string", "anyOf": [{"minLength": 2}, {"pattern": "^y"}]})),
        Just(json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3"}]})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
    ]
}

/// Structural schemas, a few levels deep.
fn schema() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        let named = proptest::collection::btree_map(proptest::sample::select(&NAMES[..]), inner.clone(), 0..4);
        prop_oneof![
            (named, any::<bool>(), any::<bool>()).prop_map(|(properties, open, default)| {
                let mut schema = json!({"type": "object", "properties": properties});
                if open {
                    schema["x-kubernetes-preserve-unknown-fields"] = true.into();
                }
                if default {
                    schema["default"] = json!({});
                }
                schema
            }),
            inner.clone().prop_map(|values| json!({"type": "object", "additionalProperties": values})),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items, "maxItems": 3})),
            inner.prop_map(|value| json!({
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": value}},
            })),
        ]
    })
}

/// Values of any shape, with names that schemas know.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(|number| json!(f64::from(number) / 4.0)),
        "[xy]{0,4}".prop_map(Value::from),
        Just(json!("2020-01-01T00:00:00Z")),
    ];
    leaf.prop_recursive(5, 32, 4, |inner| {
        let names = proptest::sample::select(&["a", "b", "c-d", "in", "k", "v", "z"][..]);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(names, inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// A definition whose spec is of that schema.
fn definition(spec: &Value) -> Value {
    let mut crd = json!({
        "metadata": {"name": "things.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": spec},
            }}}],
        },
        "status": {"storedVersions": ["v1"]},
    });
    fill_defaults(&mut crd);
    crd["status"]["acceptedNames"] = crd["spec"]["names"].clone();
    crd
}

#[allow(clippy::unnecessary_wraps, reason = "it reads metadata as others do")]
fn no_metadata(_: &mut Value) -> Result<Vec<String>, crate::MetadataError> {
    Ok(Vec::new())
}

fn custom_version(crd: &Value) -> ObjectSchema {
    Schemas::of(crd).version("v1", "v1", None, true, no_metadata)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn what_was_read_once_reads_the_same_again(schema in schema(), value in value()) {
        let custom = custom_version(&definition(&schema));
        let mut object = json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {}, "spec": value});
        if custom.read(&mut object).is_ok() {
            let mut again = object.clone();
            prop_assert_eq!(custom.read(&mut again), Ok(Vec::new()), "nothing is left to prune");
            prop_assert_eq!(&again, &object);
            let mut requested = object.clone();
            custom.read_stored(&mut requested);
            prop_assert_eq!(&requested, &object);
        }
    }

    #[test]
    fn what_is_valid_stays_so_and_may_be_written_back(schema in schema(), value in value()) {
        let custom = custom_version(&definition(&schema));
        let mut object = json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {}, "spec": value});
        if custom.read(&mut object).is_ok() {
            let causes = custom.check_create(&object);
            let text = object.to_string();
            let read: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&custom.check_create(&read), &causes);
            // An update that changes nothing is not refused, unless a rule cannot even be asked, or
            // it cannot be told that nothing changed: items lack their keys, or two have the same.
            let untold = ["FieldValueTypeInvalid", "FieldValueRequired", "FieldValueDuplicate"];
            if causes.iter().all(|cause| !untold.contains(&cause.reason)) {
                let (causes, _) = custom.check_update(&object, &object, "");
                prop_assert_eq!(causes, Vec::new());
            }
        }
    }

    #[test]
    fn no_schema_and_no_value_panics(schema in value(), raw in schema(), value in value()) {
        for schema in [schema, raw] {
            let crd = definition(&schema);
            let _ = validate(&crd, None, no_metadata);
            let _ = validate(&crd, Some(&crd), no_metadata);
            let _ = unknown_formats(&crd);
            if let Ok(schema) = serde_json::from_value::<Schema>(schema) {
                let _ = crate::validate::check(&value, &schema, "", None);
            }
        }
    }

    #[test]
    fn generated_schemas_are_accepted(schema in schema()) {
        let causes = validate(&definition(&schema), None, no_metadata);
        // Defaults of objects may lack what rules look at; nothing else is wrong with them.
        let strange = causes.iter().find(|cause| !cause.field.ends_with("default"));
        prop_assert!(strange.is_none(), "{strange:?}");
    }
}

#[test]
fn a_schema_nested_as_deep_as_a_body_can_be_is_checked() {
    let mut schema = json!({"type": "string"});
    let mut value = json!("x");
    for _ in 0..windlass_apimachinery::json::MAX_DEPTH / 2 {
        schema = json!({"type": "object", "properties": {"a": schema}});
        value = json!({"a": value});
    }
    let crd = definition(&schema);
    assert_eq!(validate(&crd, None, no_metadata), []);
    let custom = custom_version(&crd);
    let mut object =
        json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {}, "spec": value});
    assert_eq!(custom.read(&mut object), Ok(Vec::new()));
    assert_eq!(custom.check_create(&object), []);
}

#[test]
fn a_protected_group_says_whether_it_is_approved() {
    let mut crd = definition(&json!({"type": "object"}));
    crd["spec"]["group"] = "x.k8s.io".into();
    let condition = |crd: &Value| {
        let status = status_of(crd, &[], "now");
        let conditions = status["conditions"].as_array().unwrap().clone();
        let found = conditions
            .into_iter()
            .find(|condition| condition["type"] == "KubernetesAPIApprovalPolicyConformant");
        found.map(|found| (found["status"].clone(), found["reason"].clone()))
    };
    let is = |status: &str, reason: &str| Some((status.into(), reason.into()));
    assert_eq!(condition(&crd), is("False", "MissingAnnotation"));
    for (said, status, reason) in [
        ("https://example.com/1", "True", "ApprovedAnnotation"),
        ("unapproved, a test", "False", "UnapprovedAnnotation"),
        ("please", "False", "InvalidAnnotation"),
    ] {
        crd["metadata"]["annotations"]["api-approved.kubernetes.io"] = said.into();
        assert_eq!(condition(&crd), is(status, reason), "{said}");
    }
}
