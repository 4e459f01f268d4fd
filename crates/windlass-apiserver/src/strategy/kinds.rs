//! What single kinds do to their objects before they are stored.

use serde_json::{Value, json};

use crate::clock::Clock;
use crate::defaults::TEMPLATE_GENERATION;
use crate::object::{meta, meta_mut, set_meta};
use crate::resource::Resource;

/// Sets what a new object of some kinds gets.
pub(super) fn prepare_create(object: &mut Value, resource: &Resource, clock: &Clock) {
    if resource.is_custom() {
        return;
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces") => object["spec"]["finalizers"] = json!(["kubernetes"]),
        ("", "persistentvolumes") => {
            object["status"] =
                json!({"phase": "Pending", "lastPhaseTransitionTime": clock.now_seconds()});
        }
        ("", "pods") => {
            let class = qos_class(object);
            object["status"] = json!({"phase": "Pending", "qosClass": class});
        }
        ("apps", "daemonsets") => set_template_generation(object, 1),
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            let versions = object["spec"]["versions"].as_array().into_iter().flatten();
            let stored: Vec<Value> = versions
                .filter(|version| version["storage"] == true)
                .map(|version| version["name"].clone())
                .take(1)
                .collect();
            object["status"] = json!({"storedVersions": stored});
        }
        ("batch", "jobs") => select_own_pods(object),
        _ => {}
    }
}

/// Keeps what an update of the main resource of some kinds may not change.
pub(super) fn prepare_update(new: &mut Value, old: &Value, resource: &Resource) {
    if resource.is("", "namespaces") {
        match old["spec"].get("finalizers") {
            Some(finalizers) => new["spec"]["finalizers"] = finalizers.clone(),
            None => {
                if let Some(spec) = new["spec"].as_object_mut() {
                    spec.remove("finalizers");
                }
            }
        }
    } else if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        remember_storage_version(new);
    } else if resource.is("", "services") {
        keep_addresses(new, old);
    } else if resource.is("apps", "daemonsets") {
        let generation = template_generation(old);
        let changed = new["spec"]["template"] != old["spec"]["template"];
        set_template_generation(new, generation.saturating_add(i64::from(changed)));
    }
}

/// A definition's status knows every version that objects were ever stored in.
fn remember_storage_version(definition: &mut Value) {
    let versions = definition["spec"]["versions"].as_array();
    let stored = versions
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true)
        .map(|version| version["name"].clone());
    if let (Some(name), Some(known)) = (
        stored,
        definition["status"]["storedVersions"].as_array_mut(),
    ) && !known.contains(&name)
    {
        known.push(name);
    }
}

/// The same for an update of the status.
pub(super) fn prepare_status_update(new: &mut Value, old: &Value, resource: &Resource) {
    if resource.is("apps", "deployments") {
        set_meta(new, "labels", old["metadata"].get("labels").cloned());
    } else if resource.is("", "pods") {
        let owners = old["metadata"].get("ownerReferences").cloned();
        set_meta(new, "ownerReferences", owners);
        if new["status"].get("qosClass").is_none()
            && let Some(class) = old["status"].get("qosClass")
        {
            new["status"]["qosClass"] = class.clone();
        }
    }
}

/// An update that leaves the addresses and node ports out keeps them.
fn keep_addresses(new: &mut Value, old: &Value) {
    if new["spec"]["type"] == "ExternalName" {
        return;
    }
    let mut fields = vec!["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];
    if new["spec"]["type"] == "LoadBalancer" {
        fields.push("healthCheckNodePort");
    }
    for field in fields {
        let unset = new["spec"].get(field).is_none_or(|value| value == "");
        if let (true, Some(kept)) = (unset, old["spec"].get(field)) {
            new["spec"][field] = kept.clone();
        }
    }
    let has_node_ports = matches!(
        new["spec"]["type"].as_str(),
        Some("NodePort" | "LoadBalancer")
    );
    let ports = new["spec"]["ports"]
        .as_array_mut()
        .filter(|_| has_node_ports);
    for port in ports.into_iter().flatten() {
        let before = old["spec"]["ports"].as_array().into_iter().flatten();
        let same = before.into_iter().find(|before| {
            before["port"] == port["port"] && before["protocol"] == port["protocol"]
        });
        if let (Some(kept), None) = (
            same.and_then(|before| before.get("nodePort")),
            port.get("nodePort"),
        ) {
            port["nodePort"] = kept.clone();
        }
    }
}

fn template_generation(daemon_set: &Value) -> i64 {
    daemon_set["metadata"]["annotations"][TEMPLATE_GENERATION]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

fn set_template_generation(daemon_set: &mut Value, generation: i64) {
    let annotations = meta_mut(daemon_set)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(
            TEMPLATE_GENERATION.to_owned(),
            generation.to_string().into(),
        );
    }
}

/// A Job knows its pods by its uid, unless it says how else.
fn select_own_pods(job: &mut Value) {
    if job["spec"]["manualSelector"] == true {
        return;
    }
    let (name, uid) = (meta(job, "name").to_owned(), meta(job, "uid").to_owned());
    let template = &mut job["spec"]["template"];
    if !template.is_object() {
        return;
    }
    let labels = meta_mut(template)
        .entry("labels")
        .or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        for (key, value) in [
            ("controller-uid", &uid),
            ("job-name", &name),
            ("batch.kubernetes.io/controller-uid", &uid),
            ("batch.kubernetes.io/job-name", &name),
        ] {
            labels.insert(key.to_owned(), value.as_str().into());
        }
    }
    let selector = &mut job["spec"]["selector"];
    if selector.is_null() {
        *selector = json!({});
    }
    if selector.is_object() {
        let labels = &mut selector["matchLabels"];
        if !labels.is_object() {
            *labels = json!({});
        }
        labels["batch.kubernetes.io/controller-uid"] = uid.into();
    }
}

/// `BestEffort`, Burstable or Guaranteed, from the containers' resources.
fn qos_class(pod: &Value) -> &'static str {
    let containers = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten());
    let (mut any, mut all) = (false, true);
    for container in containers {
        let (requests, limits) = (
            &container["resources"]["requests"],
            &container["resources"]["limits"],
        );
        for resource in ["cpu", "memory"] {
            any |= requests.get(resource).is_some() || limits.get(resource).is_some();
            all &= limits.get(resource).is_some() && requests.get(resource) == limits.get(resource);
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
