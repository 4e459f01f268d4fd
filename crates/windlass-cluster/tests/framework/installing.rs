//! Definitions are installed without breaking what is there, and objects follow their storage version.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, CustomResourceExt};
use serde_json::{Value, json};
use windlass::run::install;
use windlass_cluster::TestCluster;

use crate::stage::{Gadget, gadget};

/// The kind with its definition edited.
fn edited(edit: impl FnOnce(&mut Value)) -> Vec<CustomResourceDefinition> {
    let mut definition = serde_json::to_value(Gadget::crd()).unwrap();
    edit(&mut definition);
    vec![serde_json::from_value(definition).unwrap()]
}

fn with_two(definition: &mut Value, storage: &str) {
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    let versions = definition["spec"]["versions"].as_array_mut().unwrap();
    versions.push(second);
    for version in versions {
        version["storage"] = (version["name"] == storage).into();
    }
}

async fn stored(cluster: &TestCluster) -> Vec<String> {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let crd = api.get("gadgets.example.com").await.unwrap();
    crd.status.unwrap().stored_versions.unwrap()
}

#[windlass_cluster::test]
async fn a_breaking_change_is_refused_with_its_path_unless_forced(cluster: TestCluster) {
    let client = cluster.client();
    let first = install(&client, "test", &edited(|_| {}), false).await;
    assert_eq!(first.unwrap(), ["installed gadgets.example.com"]);
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let narrower = edited(|d| {
        d.pointer_mut(schema).unwrap()["size"] = json!({ "type": "string" });
        d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"] = json!(["spec", "more"]);
    });
    let error = install(&client, "test", &narrower, false)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string().lines().skip(1).collect::<Vec<_>>(),
        [
            "gadgets.example.com v1 .spec.size: the type changes from integer to string",
            "gadgets.example.com v1 .more: it is required now",
        ]
    );
    // Nothing was changed.
    cluster.create(gadget("one", 3)).await;
    let forced = install(&client, "test", &narrower, true).await.unwrap();
    assert_eq!(forced.last().unwrap(), "installed gadgets.example.com");
}

#[windlass_cluster::test]
async fn objects_are_rewritten_when_the_storage_version_changes(cluster: TestCluster) {
    let client = cluster.client();
    install(&client, "test", &edited(|_| {}), false)
        .await
        .unwrap();
    for nth in 0..3 {
        cluster.create(gadget(&format!("g{nth}"), nth)).await;
    }
    let both = edited(|d| with_two(d, "v1"));
    install(&client, "test", &both, false).await.unwrap();
    assert_eq!(stored(&cluster).await, ["v1"]);
    // What is stored in a version cannot lose it.
    let without = edited(|d| {
        with_two(d, "v2");
        d["spec"]["versions"].as_array_mut().unwrap().remove(0);
    });
    let error = install(&client, "test", &without, false).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("objects may be stored as v1, which is gone"),
        "{error}"
    );
    let switched = edited(|d| with_two(d, "v2"));
    let lines = install(&client, "test", &switched, false).await.unwrap();
    assert_eq!(
        lines,
        [
            "gadgets.example.com objects are stored as v2 instead of v1, and are rewritten",
            "installed gadgets.example.com",
            "rewrote 3 objects of gadgets.example.com as v2; v1 may go",
        ]
    );
    assert_eq!(stored(&cluster).await, ["v2"]);
    assert_eq!(cluster.get::<Gadget>("g2").await.spec.size, 2);
    // Now it can go, if nobody minds that it is no longer served.
    let error = install(&client, "test", &without, false).await.unwrap_err();
    assert!(
        error.to_string().ends_with("v1 is no longer served"),
        "{error}"
    );
    install(&client, "test", &without, true).await.unwrap();
}
