//! What a write may change: the fields the server sets itself, generation, and the split of status from the rest.

use serde_json::{Value, json};

use crate::clock::Clock;
use crate::object::{self, meta, set_meta};
use crate::random::Random;
use crate::resource::Resource;

/// Kinds without a generation, among those that have a spec.
const WITHOUT_GENERATION: &[(&str, &str)] = &[
    ("", "services"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "resourcequotas"),
    ("", "limitranges"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("coordination.k8s.io", "leases"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "volumeattachments"),
    ("apiregistration.k8s.io", "apiservices"),
    ("networking.k8s.io", "ipaddresses"),
    ("networking.k8s.io", "servicecidrs"),
    ("networking.k8s.io", "ingressclasses"),
];

/// Kinds whose generation also follows their annotations.
const GENERATION_FOLLOWS_ANNOTATIONS: &[(&str, &str)] = &[("apps", "deployments")];

fn has_generation(resource: &Resource) -> bool {
    let address = (resource.group.as_str(), resource.plural.as_str());
    resource.is_custom()
        || (resource.ty.field("spec").is_some() && !WITHOUT_GENERATION.contains(&address))
        || resource.group == "admissionregistration.k8s.io"
}

/// Sets what a new object gets from the server and drops what it may not bring.
pub(crate) fn prepare_create(
    object: &mut Value,
    resource: &Resource,
    clock: &Clock,
    random: &Random,
) {
    for field in [
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "generation",
    ] {
        set_meta(object, field, None);
    }
    set_meta(object, "uid", Some(random.uid().into()));
    set_meta(
        object,
        "creationTimestamp",
        Some(clock.now_seconds().into()),
    );
    if has_generation(resource) {
        set_meta(object, "generation", Some(1.into()));
    }
    if resource.has_status() {
        reset_status(object, None);
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces") if !resource.is_custom() => {
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            let name = meta(object, "name").to_owned();
            object::meta_mut(object)
                .entry("labels")
                .or_insert_with(|| json!({}))
                .as_object_mut()
                .map(|labels| labels.insert("kubernetes.io/metadata.name".into(), name.into()));
        }
        ("", "pods") if !resource.is_custom() => {
            let class = qos_class(object);
            object["status"] = json!({"phase": "Pending", "qosClass": class});
        }
        _ => {}
    }
}

/// Keeps what an update of the main resource or of one subresource may not change.
pub(crate) fn prepare_update(new: &mut Value, old: &Value, resource: &Resource, subresource: &str) {
    for field in [
        "uid",
        "creationTimestamp",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        set_meta(new, field, old["metadata"].get(field).cloned());
    }
    match subresource {
        "status" => {
            let mut kept = old.clone();
            match new.get("status") {
                Some(status) => kept["status"] = status.clone(),
                None => {
                    if let Some(map) = kept.as_object_mut() {
                        map.remove("status");
                    }
                }
            }
            // Ownership is recorded with the write; the rest of the metadata of built-in kinds may ride along.
            if !resource.is_custom() {
                for field in ["annotations", "labels", "finalizers"] {
                    set_meta(&mut kept, field, new["metadata"].get(field).cloned());
                }
            }
            set_meta(
                &mut kept,
                "managedFields",
                new["metadata"].get("managedFields").cloned(),
            );
            set_meta(
                &mut kept,
                "resourceVersion",
                new["metadata"].get("resourceVersion").cloned(),
            );
            *new = kept;
        }
        "finalize" => {
            let mut kept = old.clone();
            kept["spec"]["finalizers"] = new["spec"]["finalizers"].clone();
            if kept["spec"]["finalizers"].is_null()
                && let Some(spec) = kept["spec"].as_object_mut()
            {
                spec.remove("finalizers");
            }
            set_meta(
                &mut kept,
                "managedFields",
                new["metadata"].get("managedFields").cloned(),
            );
            set_meta(
                &mut kept,
                "resourceVersion",
                new["metadata"].get("resourceVersion").cloned(),
            );
            *new = kept;
        }
        _ => {
            if resource.has_status() {
                reset_status(new, old.get("status"));
            }
            if resource.is("", "namespaces") {
                new["spec"]["finalizers"] = old["spec"]["finalizers"].clone();
                if old["spec"].get("finalizers").is_none()
                    && let Some(spec) = new["spec"].as_object_mut()
                {
                    spec.remove("finalizers");
                }
            }
            if resource.is("", "services") {
                // An update that leaves the address out keeps it.
                for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                    if new["spec"].get(field).is_none()
                        && let Some(kept) = old["spec"].get(field)
                    {
                        new["spec"][field] = kept.clone();
                    }
                }
            }
        }
    }
    if has_generation(resource) && generation_changes(new, old, resource) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
        set_meta(new, "generation", Some(generation.into()));
    }
}

fn reset_status(object: &mut Value, status: Option<&Value>) {
    if let Some(map) = object.as_object_mut() {
        match status {
            Some(status) => map.insert("status".into(), status.clone()),
            None => map.remove("status"),
        };
    }
}

fn generation_changes(new: &Value, old: &Value, resource: &Resource) -> bool {
    let address = (resource.group.as_str(), resource.plural.as_str());
    if resource.is_custom() || resource.ty.field("spec").is_none() {
        let rest = |object: &Value| -> serde_json::Map<String, Value> {
            let mut map = object.as_object().cloned().unwrap_or_default();
            map.remove("metadata");
            if resource.has_status() {
                map.remove("status");
            }
            map
        };
        return rest(new) != rest(old);
    }
    new.get("spec") != old.get("spec")
        || (GENERATION_FOLLOWS_ANNOTATIONS.contains(&address)
            && new["metadata"].get("annotations") != old["metadata"].get("annotations"))
}

/// BestEffort, Burstable or Guaranteed, from the containers' resources.
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
