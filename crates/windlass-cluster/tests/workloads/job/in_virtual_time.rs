//! Jobs whose pods are written by others at the same moment. (Kubernetes' own controller may count
//! such pods as failed, when it meets one between its deletion and its release.)

use futures::future::join_all;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::indexed::{indexed, with_index};
use super::{has, until_active};
use crate::stage::play;

#[test]
fn pods_that_go_with_a_success_have_not_failed_though_others_write_them_too() {
    play("written", async |scene| {
        let more = json!({ "successPolicy": { "rules": [{ "succeededIndexes": "0" }] } });
        scene.create::<Job>(indexed(4, 4, more)).await;
        let pods = until_active(scene, 4).await;
        let api = scene.api::<Pod>();
        // As a node does, which writes a pod again and again while that goes.
        let write = async |pod: &Pod| {
            let name = pod.name_any();
            for number in 0..8 {
                let patch = json!({ "metadata": { "annotations": { "n": number.to_string() } } });
                // It may be gone already.
                let _ = api
                    .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
                    .await;
            }
        };
        let writes = join_all(["1", "2", "3"].map(|index| write(with_index(&pods, index))));
        let ends = async {
            scene.end(&with_index(&pods, "0").name_any(), 0).await;
            scene
                .until::<Job>("work", "complete", |job| has(job, "Complete"))
                .await
        };
        let (_, job) = futures::join!(writes, ends);
        let status = job.status.unwrap();
        assert_eq!((status.succeeded, status.failed), (Some(1), None));
    });
}
