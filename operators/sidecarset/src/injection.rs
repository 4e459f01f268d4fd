//! Putting the containers of sets into a pod that is about to be created.
//!
//! It can be done again to its own result: a set that is recorded on the pod is done with it, and a
//! container, volume or variable that is there already is left alone.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use windlass::{Result, object};

use crate::IGNORED;
use crate::kind::{AFTER, SidecarContainer, SidecarSet};
use crate::record::{ANNOTATION, Record, records_of};

/// Where every container finds the token of its account; each gets its own.
const TOKENS: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Whether a set selects pods with these labels, in a namespace with those.
pub(crate) fn selects(
    set: &SidecarSet,
    labels: &BTreeMap<String, String>,
    namespace: &str,
    of_namespace: &BTreeMap<String, String>,
) -> bool {
    let matches = |selector: &LabelSelector, labels: &BTreeMap<String, String>| {
        let selector = Selector::try_from(selector.clone());
        selector.is_ok_and(|selector| selector.matches(labels))
    };
    let spec = &set.spec;
    let (pods, namespaces) = (&spec.selector, &spec.namespace_selector);
    !IGNORED.contains(&namespace)
        && spec.namespace.iter().all(|only| only == namespace)
        && namespaces.iter().all(|one| matches(one, of_namespace))
        && pods.iter().any(|one| matches(one, labels))
}

/// Puts the containers of these sets, in the order of the sets' names, into a pod.
pub(crate) fn inject(pod: &mut Pod, mut sets: Vec<&SidecarSet>) -> Result<()> {
    let mut records = records_of(pod);
    let Some(spec) = &mut pod.spec else {
        return Ok(());
    };
    // A pod that was copied without its sidecars still has their records.
    let is_there = |name: &String| has(&spec.containers, name);
    records.retain(|_, record| record.sidecar_list.iter().all(is_there));
    sets.retain(|set| !records.contains_key(&set.name_any()));
    if sets.is_empty() {
        return Ok(());
    }
    sets.sort_by_key(|set| set.name_any());
    let mut own = spec.containers.clone();
    for record in records.values() {
        own.retain(|container| !record.sidecar_list.contains(&container.name));
    }
    let mut first = 0;
    for set in sets {
        for sidecar in &set.spec.containers {
            if has(&spec.containers, &sidecar.container.name) {
                continue;
            }
            let container = completed(sidecar, &own);
            if sidecar.pod_inject_policy.as_deref() == Some(AFTER) {
                spec.containers.push(container);
            } else {
                spec.containers.insert(first, container);
                first += 1;
            }
        }
        let init_containers = set.spec.init_containers.iter();
        let init_containers = init_containers.map(|sidecar| completed(sidecar, &own));
        add(&mut spec.init_containers, init_containers, |one| &one.name);
        add(&mut spec.volumes, set.spec.volumes.clone(), |one| &one.name);
        let secrets = set.spec.image_pull_secrets.clone();
        add(&mut spec.image_pull_secrets, secrets, |one| &one.name);
        records.insert(set.name_any(), Record::of(set));
    }
    let text = serde_json::to_string(&records)?;
    pod.annotations_mut().insert(ANNOTATION.to_owned(), text);
    Ok(())
}

fn has(containers: &[Container], name: &str) -> bool {
    containers.iter().any(|container| container.name == name)
}

/// A sidecar with what it shares with the pod's own containers.
fn completed(sidecar: &SidecarContainer, own: &[Container]) -> Container {
    let mut container = sidecar.container.clone();
    let share = sidecar.share_volume_policy.as_ref();
    if share.and_then(|share| share.of.as_deref()) == Some("enabled") {
        let mounts = own.iter().filter_map(|one| one.volume_mounts.clone());
        let mounts = mounts.flatten().filter(|one| one.mount_path != TOKENS);
        add(&mut container.volume_mounts, mounts, |one| &one.mount_path);
    }
    for transfer in &sidecar.transfer_env {
        let source = transfer.source_container_name.as_ref();
        let source = own.iter().filter(|one| Some(&one.name) == source);
        let mut variables: Vec<EnvVar> =
            source.filter_map(|one| one.env.clone()).flatten().collect();
        variables.retain(|one| transfer.has(&one.name));
        add(&mut container.env, variables, |one| &one.name);
    }
    // By this variable a sidecar knows what it is.
    let injected = object!(EnvVar {
        name: "IS_INJECTED",
        value: "true"
    });
    add(&mut container.env, [injected], |one| &one.name);
    container
}

/// Adds to a list the items whose key is not in it.
fn add<T>(list: &mut Option<Vec<T>>, items: impl IntoIterator<Item = T>, key: fn(&T) -> &String) {
    for item in items {
        let list = list.get_or_insert_default();
        if !list.iter().any(|known| key(known) == key(&item)) {
            list.push(item);
        }
    }
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
        inject(&mut pod, sets.iter().collect()).unwrap();
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
        inject(&mut pod, sets.iter().collect()).unwrap();
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
        inject(&mut once, sets.iter().collect()).unwrap();
        let mut twice = once.clone();
        inject(&mut twice, sets.iter().collect()).unwrap();
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
        inject(&mut twice, late.iter().collect()).unwrap();
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
            vec![&set("a", json!({ "containers": [{ "name": "a1" }] }))],
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
