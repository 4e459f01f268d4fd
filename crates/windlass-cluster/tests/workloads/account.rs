//! What every namespace gets: an account, and the certificate by which pods know the API server.

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use crate::stage::play;

const ROOT_CA: &str = "kube-root-ca.crt";

fn certificate(map: &ConfigMap) -> Option<&String> {
    map.data.as_ref()?.get("ca.crt")
}

#[test]
fn a_namespace_gets_the_certificate_of_the_api_server() {
    play("certificate", async |scene| {
        let map = scene
            .until::<ConfigMap>(ROOT_CA, "published", |map| certificate(map).is_some())
            .await;
        assert_eq!(map.data.as_ref().unwrap().len(), 1);
        assert_ne!(certificate(&map).unwrap(), "");
    });
}

#[test]
fn a_certificate_that_was_spoilt_is_repaired() {
    play("spoilt-certificate", async |scene| {
        let first = scene.until::<ConfigMap>(ROOT_CA, "there", |_| true).await;
        let spoil = json!({ "data": { "ca.crt": "spoilt", "x": "y" } });
        scene.patch::<ConfigMap>(ROOT_CA, spoil).await;
        scene
            .until::<ConfigMap>(ROOT_CA, "repaired", |map| map.data == first.data)
            .await;
    });
}

#[test]
fn a_certificate_that_was_deleted_is_published_again() {
    play("deleted-certificate", async |scene| {
        let first = scene.until::<ConfigMap>(ROOT_CA, "there", |_| true).await;
        scene
            .delete::<ConfigMap>(ROOT_CA, &DeleteParams::default())
            .await;
        scene
            .until::<ConfigMap>(ROOT_CA, "published again", |map| {
                map.uid() != first.uid() && map.data == first.data
            })
            .await;
    });
}

#[test]
fn a_default_account_that_was_deleted_comes_back() {
    play("deleted-account", async |scene| {
        let first = scene
            .until::<ServiceAccount>("default", "there", |_| true)
            .await;
        scene
            .delete::<ServiceAccount>("default", &DeleteParams::default())
            .await;
        scene
            .until::<ServiceAccount>("default", "back", |account| account.uid() != first.uid())
            .await;
    });
}
