//! What is told follows the Service.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{
    CONTROLLER, HEADLESS, MANAGED_BY, SERVICE, endpoints, label, node, running, service, told,
    until_endpoints, until_slice, until_slices,
};
use crate::scene::annotation;
use crate::stage::play;

#[test]
fn a_service_without_pods_has_an_empty_slice() {
    play("no-pods", async |scene| {
        let service = service(scene, json!({})).await;
        let slice = until_slice(scene, "there", |_| true).await;
        assert_eq!(slice.address_type, "IPv4");
        assert!(endpoints(&slice).is_empty());
        assert!(slice.ports.unwrap_or_default().is_empty());
        assert_eq!(slice.metadata.generate_name.as_deref(), Some("web-"));
        let labels: BTreeMap<String, String> = [(SERVICE, "web"), (MANAGED_BY, CONTROLLER)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        assert_eq!(slice.metadata.labels, Some(labels));
        let owner = json!([{
            "apiVersion": "v1", "kind": "Service", "name": "web", "uid": service.metadata.uid,
            "controller": true, "blockOwnerDeletion": true,
        }]);
        assert_eq!(json!(slice.metadata.owner_references), owner);
        let created = service.metadata.creation_timestamp.expect("a time").0;
        let trigger = slice.metadata.annotations.and_then(|all| {
            all.get("endpoints.kubernetes.io/last-change-trigger-time")
                .cloned()
        });
        assert_eq!(trigger, Some(created.to_string()));
        let empty = until_endpoints(scene, "there", |_| true).await;
        assert_eq!(empty.subsets.unwrap_or_default(), []);
        let managed_by = "endpoints.kubernetes.io/managed-by";
        let labels = BTreeMap::from([(managed_by.to_owned(), "endpoint-controller".to_owned())]);
        assert_eq!(empty.metadata.labels, Some(labels));
    });
}

#[test]
fn an_empty_slice_serves_for_the_first_pod() {
    play("first-pod", async |scene| {
        node(scene).await;
        service(scene, json!({})).await;
        let empty = until_slice(scene, "there", |_| true).await;
        running(scene, "a", "10.1.0.1", true).await;
        let slice = until_slice(scene, "told", |slice| !told(slice).is_empty()).await;
        assert_eq!(slice.name_any(), empty.name_any());
        let port = json!([{ "name": "", "port": 8080, "protocol": "TCP" }]);
        assert_eq!(json!(slice.ports), port);
        // What the pod's readiness brought about says since when it is ready.
        let trigger = annotation(&slice, "endpoints.kubernetes.io/last-change-trigger-time");
        assert_eq!(trigger, "2026-01-02T03:04:05Z");
    });
}

#[test]
fn a_service_without_a_selector_is_left_alone() {
    play("by-hand", async |scene| {
        service(scene, json!({ "selector": null })).await;
        let away = json!({
            "metadata": { "name": "away" },
            "spec": {
                "type": "ExternalName", "externalName": "example.com", "selector": { "app": "web" },
            },
        });
        scene.create::<Service>(away).await;
        // Another one shows that the controller has had its say.
        let other = json!({
            "metadata": { "name": "other" },
            "spec": { "selector": { "app": "other" }, "ports": [{ "port": 1 }] },
        });
        scene.create::<Service>(other).await;
        until_slices(scene, "there", |slices| !slices.is_empty()).await;
        scene.until::<Endpoints>("other", "there", |_| true).await;
        let slices = scene.list::<EndpointSlice>().await;
        let owners: Vec<_> = slices.iter().map(|slice| label(slice, SERVICE)).collect();
        assert_eq!(owners, [Some("other")]);
        assert!(scene.find::<Endpoints>("web").await.is_none());
        assert!(scene.find::<Endpoints>("away").await.is_none());
    });
}

#[test]
fn a_headless_service_is_labelled_and_needs_no_ports() {
    play("headless", async |scene| {
        node(scene).await;
        service(scene, json!({ "clusterIP": "None", "ports": null })).await;
        running(scene, "a", "10.1.0.1", true).await;
        let slice = until_slice(scene, "told", |slice| told(slice).len() == 1).await;
        assert!(slice.ports.clone().unwrap_or_default().is_empty());
        assert_eq!(label(&slice, HEADLESS), Some(""));
        let told = until_endpoints(scene, "told", |told| {
            told.subsets
                .as_ref()
                .is_some_and(|subsets| !subsets.is_empty())
        })
        .await;
        assert_eq!(label(&told, HEADLESS), Some(""));
        assert_eq!(json!(told.subsets)[0]["ports"], Value::Null);
    });
}

#[test]
fn labels_of_the_service_are_those_of_its_endpoints() {
    play("labels", async |scene| {
        node(scene).await;
        service(scene, json!({})).await;
        running(scene, "a", "10.1.0.1", true).await;
        until_slice(scene, "told", |slice| told(slice).len() == 1).await;
        let labels = json!({ "metadata": { "labels": { "tier": "front", HEADLESS: "no" } } });
        scene.patch::<Service>("web", labels).await;
        let slice = until_slice(scene, "labelled", |slice| {
            label(slice, "tier") == Some("front")
        })
        .await;
        // The reserved ones are not the Service's to say.
        assert_eq!(label(&slice, HEADLESS), None);
        until_endpoints(scene, "labelled", |told| {
            label(told, "tier") == Some("front")
        })
        .await;
    });
}

#[test]
fn what_somebody_deletes_comes_back() {
    play("comes-back", async |scene| {
        node(scene).await;
        service(scene, json!({})).await;
        running(scene, "a", "10.1.0.1", true).await;
        let slice = until_slice(scene, "told", |slice| told(slice).len() == 1).await;
        let before = until_endpoints(scene, "told", |_| true).await;
        let params = DeleteParams::default();
        scene
            .delete::<EndpointSlice>(&slice.name_any(), &params)
            .await;
        scene.delete::<Endpoints>("web", &params).await;
        until_slice(scene, "back", |again| {
            again.metadata.uid != slice.metadata.uid && told(again).len() == 1
        })
        .await;
        until_endpoints(scene, "back", |again| {
            again.metadata.uid != before.metadata.uid
        })
        .await;
    });
}

#[test]
fn a_service_takes_its_endpoints_with_it() {
    play("gone", async |scene| {
        service(scene, json!({})).await;
        until_slice(scene, "there", |_| true).await;
        until_endpoints(scene, "there", |_| true).await;
        // Endpoints by hand go with their Service as well.
        let by_hand =
            json!({ "metadata": { "name": "hand" }, "spec": { "ports": [{ "port": 1 }] } });
        scene.create::<Service>(by_hand).await;
        let written = json!({ "metadata": { "name": "hand" }, "subsets": [] });
        scene.create::<Endpoints>(written).await;
        let alone = json!({ "metadata": { "name": "alone" }, "subsets": [] });
        scene.create::<Endpoints>(alone).await;
        for name in ["web", "hand"] {
            scene
                .delete::<Service>(name, &DeleteParams::default())
                .await;
            scene.until_gone::<Endpoints>(name).await;
        }
        until_slices(scene, "gone", |slices| {
            slices
                .iter()
                .all(|slice| label(slice, SERVICE) != Some("web"))
        })
        .await;
        let alone = scene.find::<Endpoints>("alone").await;
        assert!(alone.is_some(), "what never had a Service stays");
    });
}

#[test]
fn traffic_stays_near_when_asked_to() {
    play("near", async |scene| {
        node(scene).await;
        service(scene, json!({ "trafficDistribution": "PreferSameNode" })).await;
        running(scene, "a", "10.1.0.1", true).await;
        let slice = until_slice(scene, "told", |slice| told(slice).len() == 1).await;
        let node = json!([{ "name": scene.namespace }]);
        let near = json!({ "forZones": [{ "name": "north" }], "forNodes": node });
        assert_eq!(json!(endpoints(&slice)[0].hints), near);
        let anywhere = json!({ "spec": { "trafficDistribution": null } });
        scene.patch::<Service>("web", anywhere).await;
        until_slice(scene, "anywhere", |slice| {
            endpoints(slice)[0].hints.is_none()
        })
        .await;
    });
}
