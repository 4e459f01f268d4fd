//! Putting the containers of sets into a pod that is about to be created.
//!
//! It can be done again to its own result: a set that is recorded on the pod is done with it, and a
//! container, volume or variable that is there already is left alone.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use windlass::Result;

use crate::IGNORED;
use crate::kind::{AFTER, ENABLED, SidecarContainer, SidecarSet};
use crate::record::{ANNOTATION, Record, records_of, text_of};

/// The variable by which a sidecar knows what it is.
const IS_INJECTED: &str = "IS_INJECTED";
/// Where every container finds the token of its account; each gets its own.
const TOKENS: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Whether a set is about pods with these labels, in a namespace with those.
pub(crate) fn selects(
    set: &SidecarSet,
    labels: &BTreeMap<String, String>,
    namespace: &str,
    of_namespace: &BTreeMap<String, String>,
) -> bool {
    let matches = |selector: &LabelSelector, labels: &BTreeMap<String, String>| {
        Selector::try_from(LabelSelector::clone(selector))
            .is_ok_and(|selector| selector.matches(labels))
    };
    let spec = &set.spec;
    !IGNORED.contains(&namespace)
        && spec
            .namespace
            .as_deref()
            .is_none_or(|only| only == namespace)
        && spec
            .namespace_selector
            .as_ref()
            .is_none_or(|selector| matches(selector, of_namespace))
        && spec
            .selector
            .as_ref()
            .is_some_and(|selector| matches(selector, labels))
}

/// Puts the containers of these sets, in the order of the sets' names, into a pod.
pub(crate) fn inject(pod: &mut Pod, sets: &[impl Borrow<SidecarSet>]) -> Result<()> {
    let mut records = records_of(pod);
    let Some(spec) = pod.spec.as_mut() else {
        return Ok(());
    };
    // A record that came with a copied pod without its containers tells nothing.
    records.retain(|_, record| {
        record
            .sidecar_list
            .iter()
            .all(|name| has(&spec.containers, name))
    });
    let mut sets: Vec<&SidecarSet> = sets
        .iter()
        .map(Borrow::borrow)
        .filter(|set: &&SidecarSet| !records.contains_key(&set.name_any()))
        .collect();
    if sets.is_empty() {
        return Ok(());
    }
    sets.sort_by_key(|set| set.name_any());
    let own: Vec<Container> = spec
        .containers
        .iter()
        .filter(|container| {
            !records
                .values()
                .any(|record| record.sidecar_list.contains(&container.name))
        })
        .cloned()
        .collect();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for set in sets {
        for sidecar in &set.spec.containers {
            let there = [&spec.containers, &before, &after];
            if there.iter().any(|list| has(list, &sidecar.container.name)) {
                continue;
            }
            let container = completed(sidecar, &own);
            if sidecar.pod_inject_policy.as_deref() == Some(AFTER) {
                after.push(container);
            } else {
                before.push(container);
            }
        }
        add_rest(spec, set, &own);
        records.insert(set.name_any(), Record::of(set));
    }
    spec.containers.splice(0..0, before);
    spec.containers.extend(after);
    let text = text_of(&records)?;
    pod.annotations_mut().insert(ANNOTATION.to_owned(), text);
    Ok(())
}

/// Init containers, volumes and secrets.
fn add_rest(spec: &mut PodSpec, set: &SidecarSet, own: &[Container]) {
    for sidecar in &set.spec.init_containers {
        let list = spec.init_containers.get_or_insert_default();
        if !has(list, &sidecar.container.name) {
            list.push(completed(sidecar, own));
        }
    }
    for volume in &set.spec.volumes {
        let list = spec.volumes.get_or_insert_default();
        if !list.iter().any(|known| known.name == volume.name) {
            list.push(volume.clone());
        }
    }
    for secret in &set.spec.image_pull_secrets {
        let list = spec.image_pull_secrets.get_or_insert_default();
        if !list.contains(secret) {
            list.push(secret.clone());
        }
    }
}

/// A sidecar with what it shares with the pod's own containers.
fn completed(sidecar: &SidecarContainer, own: &[Container]) -> Container {
    let mut container = sidecar.container.clone();
    let policy = sidecar.share_volume_policy.as_ref();
    if policy.and_then(|policy| policy.of.as_deref()) == Some(ENABLED) {
        let mounts = container.volume_mounts.get_or_insert_default();
        for mount in own
            .iter()
            .filter_map(|one| one.volume_mounts.as_ref())
            .flatten()
        {
            let taken = mounts
                .iter()
                .any(|known| known.mount_path == mount.mount_path);
            if !taken && mount.mount_path != TOKENS {
                mounts.push(mount.clone());
            }
        }
    }
    let mut add = |variable: EnvVar| {
        let list = container.env.get_or_insert_default();
        if !list.iter().any(|known| known.name == variable.name) {
            list.push(variable);
        }
    };
    for transfer in &sidecar.transfer_env {
        let source = own
            .iter()
            .find(|one| Some(&one.name) == transfer.source_container_name.as_ref());
        let variables = source
            .and_then(|source| source.env.as_ref())
            .into_iter()
            .flatten();
        let names: Vec<&String> = transfer
            .env_name
            .iter()
            .chain(&transfer.env_names)
            .collect();
        variables
            .filter(|variable| names.contains(&&variable.name))
            .for_each(|variable| add(variable.clone()));
    }
    add(EnvVar {
        name: IS_INJECTED.to_owned(),
        value: Some("true".to_owned()),
        value_from: None,
    });
    container
}

fn has(containers: &[Container], name: &str) -> bool {
    containers.iter().any(|container| container.name == name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(name: &str, spec: Value) -> SidecarSet {
        SidecarSet::new(name, serde_json::from_value(spec).unwrap())
    }

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": { "labels": { "app": "web" } },
            "spec": {
                "containers": [{
                    "name": "main", "image": "main:1",
                    "env": [{ "name": "PROXY_IP", "value": "1.2.3.4" }, { "name": "OTHER", "value": "x" }],
                    "volumeMounts": [
                        { "name": "data", "mountPath": "/data" },
                        { "name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" },
                    ],
                }],
                "volumes": [{ "name": "data", "emptyDir": {} }],
            },
        }))
        .unwrap()
    }

    fn names(pod: &Pod) -> Vec<&str> {
        let containers = &pod.spec.as_ref().unwrap().containers;
        containers
            .iter()
            .map(|container| container.name.as_str())
            .collect()
    }

    #[test]
    fn containers_come_in_order_around_the_pods_own() {
        let mut pod = pod();
        let sets = [
            set("b", json!({ "containers": [{ "name": "b1" }] })),
            set(
                "a",
                json!({ "containers": [
                { "name": "a1" }, { "name": "z", "podInjectPolicy": "AfterAppContainer" }, { "name": "a2" },
            ] }),
            ),
        ];
        inject(&mut pod, &sets).unwrap();
        assert_eq!(names(&pod), ["a1", "a2", "b1", "main", "z"]);
        assert_eq!(records_of(&pod)["a"].sidecar_list, ["a1", "z", "a2"]);
    }

    #[test]
    fn volumes_mounts_and_variables_are_shared_as_asked_for() {
        let mut pod = pod();
        let sets = [set(
            "a",
            json!({
                "containers": [{
                    "name": "a1",
                    "shareVolumePolicy": { "type": "enabled" },
                    "transferEnv": [{ "sourceContainerName": "main", "envName": "PROXY_IP" }],
                    "volumeMounts": [{ "name": "log", "mountPath": "/log" }],
                }],
                "initContainers": [{ "name": "first", "image": "i" }],
                "volumes": [{ "name": "log", "emptyDir": {} }, { "name": "data", "emptyDir": {} }],
            }),
        )];
        inject(&mut pod, &sets).unwrap();
        let spec = serde_json::to_value(pod.spec.unwrap()).unwrap();
        let sidecar = &spec["containers"][0];
        let paths: Vec<&Value> = sidecar["volumeMounts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|mount| &mount["mountPath"])
            .collect();
        assert_eq!(paths, ["/log", "/data"]);
        assert_eq!(
            sidecar["env"],
            json!([
                { "name": "PROXY_IP", "value": "1.2.3.4" }, { "name": "IS_INJECTED", "value": "true" },
            ])
        );
        assert_eq!(spec["initContainers"][0]["name"], "first");
        let volumes: Vec<&Value> = spec["volumes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|volume| &volume["name"])
            .collect();
        assert_eq!(volumes, ["data", "log"]);
    }

    #[test]
    fn injecting_twice_is_injecting_once() {
        let sets = [
            set(
                "a",
                json!({ "containers": [{ "name": "a1" }], "volumes": [{ "name": "v" }] }),
            ),
            set(
                "b",
                json!({ "containers": [{ "name": "b1", "podInjectPolicy": "AfterAppContainer" }] }),
            ),
        ];
        let mut once = pod();
        inject(&mut once, &sets).unwrap();
        let mut twice = once.clone();
        inject(&mut twice, &sets).unwrap();
        assert_eq!(once, twice);
        // Another set comes between the calls: it is added, and shares nothing with sidecars.
        let late = [
            sets[0].clone(),
            set(
                "c",
                json!({ "containers": [
            { "name": "c1", "transferEnv": [{ "sourceContainerName": "a1", "envName": "IS_INJECTED" }] },
        ] }),
            ),
        ];
        inject(&mut twice, &late).unwrap();
        assert_eq!(names(&twice), ["c1", "a1", "main", "b1"]);
    }

    #[test]
    fn a_record_without_its_containers_is_no_record() {
        let mut copied = pod();
        copied.annotations_mut().insert(
            ANNOTATION.to_owned(),
            r#"{"a":{"hash":"x","sidecarList":["a1"]}}"#.to_owned(),
        );
        inject(
            &mut copied,
            &[set("a", json!({ "containers": [{ "name": "a1" }] }))],
        )
        .unwrap();
        assert_eq!(names(&copied), ["a1", "main"]);
    }

    #[test]
    fn a_set_selects_by_labels_namespace_and_its_labels() {
        let labels = |text: &str| BTreeMap::from([("app".to_owned(), text.to_owned())]);
        let web = json!({ "matchLabels": { "app": "web" } });
        let one = set("a", json!({ "selector": web }));
        assert!(selects(&one, &labels("web"), "default", &BTreeMap::new()));
        assert!(!selects(&one, &labels("db"), "default", &BTreeMap::new()));
        assert!(!selects(
            &one,
            &labels("web"),
            "kube-system",
            &BTreeMap::new()
        ));
        let within = set(
            "a",
            json!({ "selector": web, "namespace": "n", "namespaceSelector": web }),
        );
        assert!(selects(&within, &labels("web"), "n", &labels("web")));
        assert!(!selects(&within, &labels("web"), "n", &labels("db")));
        assert!(!selects(&within, &labels("web"), "m", &labels("web")));
        assert!(
            !selects(&set("a", json!({})), &labels("web"), "n", &labels("web")),
            "without a selector, nothing"
        );
    }
}
