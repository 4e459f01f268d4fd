//! Each breaking change of a definition is named with its path, and others are not called breaking.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use windlass_manifests::upgrade::changes;

fn definition(edit: impl FnOnce(&mut Value)) -> CustomResourceDefinition {
    let mut definition = json!({
        "metadata": { "name": "things.demo.dev" },
        "spec": {
            "group": "demo.dev",
            "scope": "Namespaced",
            "names": { "kind": "Thing", "plural": "things" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {}, "scale": { "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size" } },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": { "type": "string", "minLength": 1, "maxLength": 10 },
                        "size": { "type": "integer", "minimum": 0, "maximum": 10, "nullable": true },
                        "mode": { "type": "string", "enum": ["A", "B"] },
                        "free": { "type": "string" },
                        "extra": { "x-kubernetes-preserve-unknown-fields": true },
                        "parts": {
                            "type": "array",
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["id"],
                            "items": { "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } },
                        },
                        "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                    },
                } } } },
            }],
        },
        "status": { "storedVersions": ["v1"], "acceptedNames": { "kind": "Thing", "plural": "things" }, "conditions": [] },
    });
    edit(&mut definition);
    serde_json::from_value(definition).unwrap()
}

fn found(edit: impl FnOnce(&mut Value)) -> (Vec<String>, Vec<String>) {
    let all = changes(&definition(|_| {}), &definition(edit));
    let (breaking, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.breaking);
    let text = |list: Vec<windlass_manifests::upgrade::Change>| {
        list.iter().map(ToString::to_string).collect()
    };
    (text(breaking), text(others))
}

fn spec(definition: &mut Value) -> &mut Value {
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    definition.pointer_mut(path).unwrap()
}

fn field<'a>(definition: &'a mut Value, name: &str) -> &'a mut Value {
    &mut spec(definition)["properties"][name]
}

#[test]
fn nothing_changes_when_nothing_does() {
    assert_eq!(found(|_| {}), (vec![], vec![]));
}

#[test]
fn each_breaking_change_is_named_with_its_path() {
    type Edit = fn(&mut Value);
    let table: [(Edit, &str); 23] = [
        (
            |d| d["spec"]["scope"] = "Cluster".into(),
            "the scope changes from Namespaced to Cluster",
        ),
        (
            |d| d["spec"]["names"]["kind"] = "Other".into(),
            "the kind changes from Thing to Other",
        ),
        (
            |d| d["spec"]["names"]["plural"] = "others".into(),
            "the plural name changes from things to others",
        ),
        (
            |d| d["spec"]["versions"][0]["served"] = false.into(),
            "v1 is no longer served",
        ),
        (
            |d| {
                d["spec"]["versions"][0]["subresources"]
                    .as_object_mut()
                    .unwrap()
                    .remove("scale");
            },
            "v1: the subresource scale goes",
        ),
        (
            |d| {
                spec(d)["properties"]
                    .as_object_mut()
                    .unwrap()
                    .remove("free");
            },
            "v1 .spec.free: the field goes",
        ),
        (
            |d| field(d, "size")["type"] = "string".into(),
            "v1 .spec.size: the type changes from integer to string",
        ),
        (
            |d| *field(d, "extra") = json!({ "type": "object" }),
            "v1 .spec.extra: the type changes from any to object",
        ),
        (
            |d| spec(d)["required"] = json!(["name", "free"]),
            "v1 .spec.free: it is required now",
        ),
        (
            |d| field(d, "mode")["enum"] = json!(["A"]),
            "v1 .spec.mode: \"B\" is no longer allowed",
        ),
        (
            |d| field(d, "free")["enum"] = json!(["x"]),
            "v1 .spec.free: only [\"x\"] is allowed now",
        ),
        (
            |d| field(d, "size")["minimum"] = json!(1),
            "v1 .spec.size: minimum changes from 0 to 1",
        ),
        (
            |d| field(d, "size")["maximum"] = json!(9),
            "v1 .spec.size: maximum changes from 10 to 9",
        ),
        (
            |d| field(d, "name")["minLength"] = json!(2),
            "v1 .spec.name: minLength changes from 1 to 2",
        ),
        (
            |d| field(d, "name")["maxLength"] = json!(9),
            "v1 .spec.name: maxLength changes from 10 to 9",
        ),
        (
            |d| field(d, "parts")["maxItems"] = json!(3),
            "v1 .spec.parts: maxItems changes from none to 3",
        ),
        (
            |d| field(d, "free")["pattern"] = "^a$".into(),
            "v1 .spec.free: pattern changes from none to \"^a$\"",
        ),
        (
            |d| field(d, "free")["format"] = "uuid".into(),
            "v1 .spec.free: format changes from none to \"uuid\"",
        ),
        (
            |d| field(d, "size")["nullable"] = false.into(),
            "v1 .spec.size: null is no longer allowed",
        ),
        (
            |d| field(d, "parts")["x-kubernetes-list-type"] = "atomic".into(),
            "v1 .spec.parts: x-kubernetes-list-type changes from \"map\" to \"atomic\"",
        ),
        (
            |d| field(d, "parts")["items"]["properties"]["id"]["type"] = "integer".into(),
            "v1 .spec.parts[].id: the type changes from string to integer",
        ),
        (
            |d| field(d, "labels")["additionalProperties"]["type"] = "integer".into(),
            "v1 .spec.labels{}: the type changes from string to integer",
        ),
        (
            |d| spec(d)["x-kubernetes-validations"] = json!([{ "rule": "self.size > 1" }]),
            "v1 .spec: there is a new rule: \"self.size > 1\"",
        ),
    ];
    for (edit, expected) in table {
        let (breaking, _) = found(edit);
        assert!(
            breaking.contains(&expected.to_owned()),
            "{expected}: {breaking:#?}"
        );
        assert_eq!(breaking.len(), 1, "{breaking:#?}");
    }
}

#[test]
fn a_version_that_objects_are_stored_in_cannot_go() {
    let (breaking, notes) = found(|d| d["spec"]["versions"][0]["name"] = "v2".into());
    assert_eq!(
        breaking,
        [
            "objects may be stored as v1, which is gone",
            "v1 is no longer served"
        ]
    );
    assert_eq!(
        notes,
        ["objects are stored as v2 instead of v1, and are rewritten"]
    );
}

#[test]
fn wider_is_not_broken() {
    let (breaking, notes) = found(|d| {
        *field(d, "size") =
            json!({ "type": "integer", "maximum": 20, "nullable": true, "default": 3 });
        field(d, "mode")["enum"] = json!(["A", "B", "C"]);
        field(d, "name")
            .as_object_mut()
            .unwrap()
            .remove("minLength");
        field(d, "free")["nullable"] = true.into();
        spec(d)["properties"]["new"] = json!({ "type": "string", "default": "x" });
        spec(d)["required"] = json!(["new"]);
        let second = d["spec"]["versions"][0].clone();
        d["spec"]["versions"].as_array_mut().unwrap().push(second);
        d["spec"]["versions"][1]["name"] = "v2".into();
        d["spec"]["versions"][1]["storage"] = false.into();
    });
    assert_eq!(breaking, Vec::<String>::new());
    assert_eq!(notes, ["v1 .spec.size: the default changes from none to 3"]);
}
