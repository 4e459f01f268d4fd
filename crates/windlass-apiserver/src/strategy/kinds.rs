//! What single kinds do to their objects before they are stored.

use serde_json::{Value, json};

use super::{certificate, claim_source, disabled, pod};
use crate::clock::Clock;
use crate::defaults::TEMPLATE_GENERATION;
use crate::object::{meta, meta_mut, set_meta};
use crate::resource::Resource;
use crate::services;

/// Sets what a new object of some kinds gets.
pub(super) fn prepare_create(object: &mut Value, resource: &Resource, clock: &Clock) {
    if resource.is_custom() {
        return;
    }
    disabled::drop(object, resource);
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces") => add_namespace_finalizer(object),
        ("", "serviceaccounts") => keep_secret_names(object),
        ("", "persistentvolumeclaims") => claim_source::normalise_sources(object, None),
        ("discovery.k8s.io", "endpointslices") => drop_topology(object),
        ("", "persistentvolumes") => {
            object["status"] =
                json!({"phase": "Pending", "lastPhaseTransitionTime": clock.now_seconds()});
        }
        ("", "pods") => {
            pod::prepare_create(object, clock);
        }
        ("apps", "daemonsets") => {
            let told = template_generation(object);
            set_template_generation(object, told.max(1));
        }
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
        ("apiregistration.k8s.io", "apiservices") if object["spec"].get("service").is_none() => {
            object["status"] = json!({"conditions": [{
                "type": "Available",
                "status": "True",
                "lastTransitionTime": clock.now_seconds(),
                "reason": "Local",
                "message": "Local APIServices are always available",
            }]});
        }
        _ => {}
    }
}

/// Keeps what an update of the main resource of some kinds may not change.
pub(super) fn prepare_update(new: &mut Value, old: &Value, resource: &Resource) {
    disabled::drop(new, resource);
    if resource.is("", "namespaces") {
        match old["spec"].get("finalizers") {
            Some(finalizers) => new["spec"]["finalizers"] = finalizers.clone(),
            None => {
                if let Some(spec) = new["spec"].as_object_mut() {
                    spec.remove("finalizers");
                }
            }
        }
    } else if resource.is("", "serviceaccounts") {
        keep_secret_names(new);
    } else if resource.is("", "persistentvolumeclaims") {
        claim_source::normalise_sources(new, Some(old));
    } else if resource.is("certificates.k8s.io", "certificatesigningrequests") {
        new["spec"] = old["spec"].clone();
    } else if resource.is("discovery.k8s.io", "endpointslices") {
        drop_topology(new);
    } else if resource.is("apiextensions.k8s.io", "customresourcedefinitions") {
        remember_storage_version(new);
    } else if resource.is("", "services") {
        services::drop_dependent(new, old);
    } else if resource.is("apps", "daemonsets") {
        let generation = template_generation(old);
        let changed = new["spec"]["template"] != old["spec"]["template"];
        set_template_generation(new, generation.saturating_add(i64::from(changed)));
    }
}

/// A namespace is held by Kubernetes, and by whom it names.
fn add_namespace_finalizer(namespace: &mut Value) {
    let finalizers = &mut namespace["spec"]["finalizers"];
    match finalizers.as_array_mut() {
        Some(list) if list.iter().any(|name| name == "kubernetes") => {}
        Some(list) => list.push("kubernetes".into()),
        None => *finalizers = json!(["kubernetes"]),
    }
}

/// Of the secrets of an account only their names count.
fn keep_secret_names(account: &mut Value) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten() {
        if let Some(secret) = secret.as_object_mut() {
            secret.retain(|field, _| field == "name");
        }
    }
}

/// This version has fields for what was told here.
fn drop_topology(slice: &mut Value) {
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten() {
        if let Some(endpoint) = endpoint.as_object_mut() {
            endpoint.remove("deprecatedTopology");
        }
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
    } else if resource.is("certificates.k8s.io", "certificatesigningrequests") {
        certificate::keep_decisions(new, old);
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
            labels.entry(key).or_insert_with(|| value.as_str().into());
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
        let own = &mut labels["batch.kubernetes.io/controller-uid"];
        if own.is_null() {
            *own = uid.into();
        }
    }
}
