//! Types made from a definition in YAML are those in the repository, which the framework's tests
//! compile.

use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_manifests::types;

fn definition() -> CustomResourceDefinition {
    let yaml = include_str!("../../windlass/tests/controller_gen/ships.yaml");
    serde_saphyr::from_str(yaml).expect("a definition")
}

#[test]
fn types_are_made_from_the_definition() {
    let made = types(&definition(), None).expect("types");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../windlass/tests/types/ship.rs");
    if std::env::var_os("TYPES_WRITE").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(kept, made, "write them anew with TYPES_WRITE=1");
    assert_eq!(types(&definition(), Some("v1")).as_ref(), Some(&made));
    assert_eq!(types(&definition(), Some("v9")), None);
}
