//! Types made from a definition in YAML compile, and read what the definition allows. That these are
//! what is made says a test of `windlass-manifests`.

#[allow(unreachable_pub)]
#[rustfmt::skip]
mod ship;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use windlass::manifests::generate::Generator;

fn definition() -> CustomResourceDefinition {
    serde_saphyr::from_str(include_str!("../controller_gen/ships.yaml")).expect("a definition")
}

/// Without what is null or an empty default: the same thing said in another way.
fn said(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), said(value)))
            .collect(),
        Value::Array(items) => items.iter().map(said).collect(),
        scalar => scalar.clone(),
    }
}

#[test]
fn they_read_and_write_what_the_definition_allows() {
    let crd = definition();
    for seed in 0..300 {
        let object = Generator::new(seed).object(&crd, "v1", "one").unwrap();
        let typed: ship::Ship = serde_json::from_value(object.clone())
            .unwrap_or_else(|error| panic!("seed {seed}: {error} in {object}"));
        let written = serde_json::to_value(&typed).unwrap();
        assert_eq!(said(&written), said(&object), "seed {seed}");
    }
    assert_eq!(kube_kind(), "Ship");
}

fn kube_kind() -> String {
    use kube::Resource as _;
    ship::Ship::kind(&()).into_owned()
}
