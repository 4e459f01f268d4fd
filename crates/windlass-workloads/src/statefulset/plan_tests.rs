use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::pod::testing::{at, in_phase, pod as named, ready};

fn set(replicas: i32, more: Value) -> StatefulSet {
    let mut object = json!({
        "metadata": {"name": "web", "uid": "set"},
        "spec": {"replicas": replicas, "selector": {}, "template": {}, "serviceName": "web"},
    });
    if let Value::Object(more) = more {
        for (key, value) in more {
            object["spec"][key] = value;
        }
    }
    serde_json::from_value(object).unwrap()
}

fn version(name: &str) -> Version {
    Version {
        name: name.to_owned(),
        template: PodTemplateSpec::default(),
    }
}

/// A pod of the set as its controller makes it, of one revision.
fn pod(ordinal: i32, revision: &str) -> Pod {
    let made = template::pod(&set(9, json!({})), &version(revision), ordinal);
    let mut pod = named(made.metadata.name.as_deref().unwrap());
    pod.metadata.labels = made.metadata.labels;
    pod
}

fn well(ordinal: i32, revision: &str) -> Pod {
    ready(pod(ordinal, revision), 0)
}

fn going(mut pod: Pod) -> Pod {
    pod.metadata.deletion_timestamp = Some(Time(at(1)));
    pod
}

fn steps(set: &StatefulSet, pods: &[Pod]) -> Vec<String> {
    let pods: Vec<_> = pods.iter().cloned().map(Arc::new).collect();
    let claims = BTreeMap::new();
    let (current, update) = (version("old"), version("new"));
    let view = View {
        set,
        current: &current,
        update: &update,
        pods: &pods,
        claims: &claims,
        now: at(100),
    };
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap();
    let steps = plan(&view).steps.into_iter();
    steps
        .map(|step| match step {
            Step::Create(pod, _) => format!("create {} {}", name(&pod), template::revision(&pod)),
            Step::Claim(pod, _) => format!("claim {}", name(&pod)),
            Step::Repair(pod, _) => format!("repair {}", name(&pod)),
            Step::Retain(pod, _) => format!("retain {}", name(&pod)),
            Step::Delete(pod) => format!("delete {}", name(&pod)),
        })
        .collect()
}

#[test]
fn an_ordered_set_grows_one_by_one() {
    let set = set(3, json!({}));
    assert_eq!(steps(&set, &[]), ["create web-0 new"]);
    assert_eq!(steps(&set, &[pod(0, "new")]), ["claim web-0"]);
    assert_eq!(
        steps(&set, &[in_phase(pod(0, "new"), "Running")]),
        [] as [&str; 0]
    );
    assert_eq!(steps(&set, &[well(0, "new")]), ["create web-1 new"]);
    assert_eq!(
        steps(&set, &[well(0, "new"), well(2, "new")]),
        ["create web-1 new"]
    );
}

#[test]
fn a_parallel_set_grows_at_once() {
    let set = set(3, json!({"podManagementPolicy": "Parallel"}));
    let all = ["create web-0 new", "create web-1 new", "create web-2 new"];
    assert_eq!(steps(&set, &[]), all);
}

#[test]
fn an_ordered_set_gets_smaller_from_the_end_and_one_by_one() {
    let set = set(1, json!({}));
    let pods = [well(0, "new"), well(1, "new"), well(2, "new")];
    assert_eq!(steps(&set, &pods), ["delete web-2"]);
    let pods = [well(0, "new"), well(1, "new"), going(well(2, "new"))];
    assert_eq!(steps(&set, &pods), [] as [&str; 0]);
    // The unhealthy one itself may go, no other before it.
    let pods = [well(0, "new"), well(1, "new"), pod(2, "new")];
    assert_eq!(steps(&set, &pods), ["delete web-2"]);
    let pods = [well(0, "new"), pod(1, "new"), pod(2, "new")];
    assert_eq!(steps(&set, &pods), [] as [&str; 0]);
}

#[test]
fn a_parallel_set_gets_smaller_at_once() {
    let set = set(1, json!({"podManagementPolicy": "Parallel"}));
    let pods = [well(0, "new"), pod(1, "new"), well(2, "new")];
    assert_eq!(steps(&set, &pods), ["delete web-2", "delete web-1"]);
}

#[test]
fn an_ended_pod_is_replaced() {
    let set = set(2, json!({}));
    let pods = [in_phase(pod(0, "new"), "Failed"), well(1, "new")];
    assert_eq!(steps(&set, &pods), ["delete web-0"]);
    let pods = [going(in_phase(pod(0, "new"), "Failed")), well(1, "new")];
    assert_eq!(steps(&set, &pods), [] as [&str; 0]);
}

#[test]
fn an_update_goes_from_the_end_down_to_the_partition() {
    let rolling = |partition: i32| {
        json!({"updateStrategy": {
            "type": "RollingUpdate", "rollingUpdate": {"partition": partition},
        }})
    };
    let old: Vec<Pod> = (0..3).map(|ordinal| well(ordinal, "old")).collect();
    assert_eq!(steps(&set(3, rolling(0)), &old), ["delete web-2"]);
    let half = [well(0, "old"), well(1, "old"), well(2, "new")];
    assert_eq!(steps(&set(3, rolling(0)), &half), ["delete web-1"]);
    assert_eq!(steps(&set(3, rolling(2)), &half), [] as [&str; 0]);
    let half = [
        well(0, "old"),
        well(1, "old"),
        in_phase(pod(2, "new"), "Running"),
    ];
    assert_eq!(steps(&set(3, rolling(0)), &half), [] as [&str; 0]);
    // A pod below the partition comes back as it was.
    let missing = [well(0, "old"), well(2, "new")];
    assert_eq!(steps(&set(3, rolling(2)), &missing), ["create web-1 old"]);
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    assert_eq!(steps(&set(3, on_delete.clone()), &old), [] as [&str; 0]);
    assert_eq!(steps(&set(3, on_delete), &old[1..]), ["create web-0 new"]);
}

#[test]
fn ordinals_may_start_elsewhere() {
    let set = set(2, json!({"ordinals": {"start": 5}}));
    assert_eq!(steps(&set, &[]), ["create web-5 new"]);
    let pods = [well(0, "new"), well(5, "new"), well(6, "new")];
    assert_eq!(steps(&set, &pods), ["delete web-0"]);
}

#[test]
fn a_pod_waits_until_its_claim_of_before_is_gone() {
    let mut set = set(
        1,
        json!({
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Delete"},
        }),
    );
    set.spec.as_mut().unwrap().volume_claim_templates = Some(vec![
        serde_json::from_value(json!({"metadata": {"name": "data"}})).unwrap(),
    ]);
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({"metadata": {
        "name": "data-web-0",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "gone"}],
    }}))
    .unwrap();
    let claims = BTreeMap::from([("data-web-0".to_owned(), Arc::new(claim))]);
    let (current, update) = (version("old"), version("new"));
    let view = View {
        set: &set,
        current: &current,
        update: &update,
        pods: &[],
        claims: &claims,
        now: at(0),
    };
    let plan = plan(&view);
    assert!(plan.steps.is_empty() && plan.waits_for_claim);
}

proptest! {
    /// Whatever pods there are, an ordered set takes one step at a time and a fulfilled one none.
    #[test]
    fn an_ordered_set_creates_or_deletes_one_pod_at_most(
        replicas in 0..5i32,
        pods in prop::collection::btree_map(0..8i32, (0..4u8, prop::bool::ANY), 0..8),
    ) {
        let pods: Vec<Pod> = pods.into_iter().map(|(ordinal, (state, is_new))| {
            let revision = if is_new { "new" } else { "old" };
            match state {
                0 => pod(ordinal, revision),
                1 => going(well(ordinal, revision)),
                2 => in_phase(pod(ordinal, revision), "Failed"),
                _ => well(ordinal, revision),
            }
        }).collect();
        let steps = steps(&set(replicas, json!({})), &pods);
        let changes = steps.iter().filter(|step| !step.starts_with("claim"));
        prop_assert!(changes.count() <= 1, "{steps:?}");
    }
}
