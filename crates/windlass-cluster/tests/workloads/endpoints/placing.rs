//! Which endpoints share a slice.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use super::{
    addresses, many, node, pod, report, running, service, told, until_endpoints, until_slice,
    until_slices,
};
use crate::stage::play;

/// Whether so many endpoints are in slices of at most a hundred. How many are in each depends on
/// how many pods had been seen when the first slice was made.
fn hold(slices: &[EndpointSlice], count: usize) -> bool {
    let lengths = || slices.iter().map(|slice| told(slice).len());
    lengths().sum::<usize>() == count && lengths().all(|length| length <= 100)
}

#[test]
fn a_slice_holds_a_hundred() {
    play("hundred", async |scene| {
        node(scene).await;
        many(scene, 0..120).await;
        service(scene, json!({})).await;
        let slices = until_slices(scene, "all", |slices| hold(slices, 120)).await;
        assert_eq!(slices.len(), 2);
        until_endpoints(scene, "all", |told| addresses(told).0.len() == 120).await;
    });
}

#[test]
fn a_new_pod_changes_one_slice() {
    play("one-slice", async |scene| {
        node(scene).await;
        many(scene, 0..110).await;
        service(scene, json!({})).await;
        let before = until_slices(scene, "all", |slices| hold(slices, 110)).await;
        running(scene, "new", "10.2.0.1", true).await;
        let after = until_slices(scene, "all", |slices| hold(slices, 111)).await;
        let versions = |slices: &[EndpointSlice]| -> Vec<_> {
            let versions = slices.iter();
            versions
                .map(|slice| (slice.name_any(), slice.metadata.resource_version.clone()))
                .collect()
        };
        let before = versions(&before);
        let mut after = versions(&after);
        assert_eq!(before.len(), after.len());
        after.retain(|version| !before.contains(version));
        assert_eq!(after.len(), 1);
    });
}

#[test]
fn a_named_port_may_be_another_in_each_pod() {
    play("named-port", async |scene| {
        node(scene).await;
        let ports = json!([{ "name": "http", "port": 80, "targetPort": "web" }]);
        service(scene, json!({ "ports": ports })).await;
        for (name, ip, port) in [("a", "10.1.0.1", 8080), ("b", "10.1.0.2", 9090)] {
            let ports = json!([{ "name": "web", "containerPort": port }]);
            let containers = json!([{ "name": "main", "image": "web", "ports": ports }]);
            let named = pod(scene, name, json!({ "containers": containers }));
            scene.create::<Pod>(named).await;
            report(scene, name, ip, true).await;
        }
        // One without a port of that name stands behind no port.
        running(scene, "c", "10.1.0.3", true).await;
        let ports = |slice: &EndpointSlice| {
            let ports = slice.ports.iter().flatten();
            ports.filter_map(|port| port.port).collect::<Vec<_>>()
        };
        let slices = until_slices(scene, "by port", |slices| {
            let mut by_port: Vec<_> = slices
                .iter()
                .map(|slice| {
                    (
                        ports(slice),
                        told(slice).iter().map(|one| one.0.to_owned()).collect(),
                    )
                })
                .collect();
            by_port.sort();
            let wanted = [
                (vec![], vec!["10.1.0.3".to_owned()]),
                (vec![8080], vec!["10.1.0.1".to_owned()]),
                (vec![9090], vec!["10.1.0.2".to_owned()]),
            ];
            by_port == wanted
        })
        .await;
        assert_eq!(slices.len(), 3);
        let mut told = until_endpoints(scene, "told", |told| {
            told.subsets
                .as_ref()
                .is_some_and(|subsets| subsets.len() == 2)
        })
        .await;
        let mut ports: Vec<i32> = told
            .subsets
            .take()
            .unwrap_or_default()
            .iter()
            .flat_map(|subset| subset.ports.iter().flatten())
            .map(|port| port.port)
            .collect();
        ports.sort_unstable();
        assert_eq!(ports, [8080, 9090]);
    });
}

#[test]
fn slices_go_with_the_pods_that_needed_them() {
    play("fewer", async |scene| {
        node(scene).await;
        many(scene, 0..103).await;
        service(scene, json!({})).await;
        until_slices(scene, "all", |slices| hold(slices, 103)).await;
        let now = DeleteParams::default().grace_period(0);
        for number in 0..103 {
            let name = format!("pod-{number:03}");
            scene.delete::<Pod>(&name, &now).await;
        }
        until_slice(scene, "empty", |slice| told(slice).is_empty()).await;
    });
}
