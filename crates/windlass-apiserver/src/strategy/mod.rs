//! What a write may change: the fields the server sets itself, generation, and the split of status from the rest.

mod app_armor;
mod certificate;
mod claim_source;
mod disabled;
mod kinds;
mod pod;

use serde_json::Value;

pub(crate) use app_armor::adopt as adopt_app_armor;
pub(crate) use certificate::{set_requester, set_times as set_condition_times};
pub(crate) use pod::qos_class;

use crate::clock::Clock;
use crate::equality::{fields_mean_the_same, means_the_same};
use crate::object::{meta, set_meta};
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
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
];

/// Kinds whose generation also follows their annotations.
const GENERATION_FOLLOWS_ANNOTATIONS: &[(&str, &str)] = &[("apps", "deployments")];

fn has_generation(resource: &Resource) -> bool {
    let address = (resource.group.as_str(), resource.plural.as_str());
    resource.is_custom()
        || (resource.ty.field("spec").is_some() && !WITHOUT_GENERATION.contains(&address))
        || resource.group == "admissionregistration.k8s.io"
        || resource.is("", "podtemplates")
        || resource.is("discovery.k8s.io", "endpointslices")
        || resource.is("scheduling.k8s.io", "priorityclasses")
        || resource.is("", "podtemplates")
}

/// Fields that a write through a path is not going to change, whatever it says about them.
pub(crate) fn reset_fields(
    resource: &Resource,
    subresource: &str,
) -> &'static [&'static [&'static str]] {
    if resource.is("certificates.k8s.io", "certificatesigningrequests") {
        return certificate::reset_fields(subresource);
    }
    match subresource {
        "status" if resource.is_custom() || resource.is("storage.k8s.io", "volumeattachments") => {
            &[&["metadata"], &["spec"]]
        }
        "status" if resource.is("apps", "deployments") => &[&["spec"], &["metadata", "labels"]],
        "status" if resource.is("", "pods") => &[&["spec"], &["metadata", "ownerReferences"]],
        "status" => &[&["spec"]],
        "" | "finalize" if resource.has_status() => &[&["status"]],
        _ => &[],
    }
}

/// Drops what only the server says of an object.
pub(crate) fn wipe(object: &mut Value) {
    for field in [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "selfLink",
        "uid",
    ] {
        set_meta(object, field, None);
    }
}

/// Sets what a new object gets from the server and drops what it may not bring.
pub(crate) fn prepare_create(
    object: &mut Value,
    resource: &Resource,
    clock: &Clock,
    random: &Random,
) {
    let uid = random.uid();
    if resource.is("", "limitranges") && crate::object::meta(object, "name").is_empty() {
        set_meta(object, "name", Some(random.uid().into()));
    }
    set_meta(object, "uid", Some(uid.into()));
    set_meta(object, "selfLink", None);
    set_meta(
        object,
        "creationTimestamp",
        Some(clock.now_seconds().into()),
    );
    if has_generation(resource) {
        set_meta(object, "generation", Some(1.into()));
    }
    // A node tells its status when it joins.
    if resource.has_status() && !resource.is("", "nodes") {
        reset_status(object, None);
    }
    kinds::prepare_create(object, resource, clock);
}

/// Keeps what an update of the main resource or of one subresource may not change.
pub(crate) fn prepare_update(new: &mut Value, old: &Value, resource: &Resource, subresource: &str) {
    let before = &old["metadata"];
    for field in ["creationTimestamp", "generation", "selfLink"] {
        set_meta(new, field, before.get(field).cloned());
    }
    if meta(new, "uid").is_empty() {
        set_meta(new, "uid", before.get("uid").cloned());
    }
    // What is being deleted stays so; what is not cannot be made so by an update.
    if let Some(deleted) = before.get("deletionTimestamp") {
        set_meta(new, "deletionTimestamp", Some(deleted.clone()));
    }
    if let (Some(grace), None) = (
        before.get("deletionGracePeriodSeconds"),
        new["metadata"].get("deletionGracePeriodSeconds"),
    ) {
        set_meta(new, "deletionGracePeriodSeconds", Some(grace.clone()));
    }
    match subresource {
        "status" if resource.is_custom() || resource.is("storage.k8s.io", "volumeattachments") => {
            let mut kept = old.clone();
            move_field(new, &mut kept, "status");
            for field in ["managedFields", "resourceVersion"] {
                set_meta(&mut kept, field, new["metadata"].get(field).cloned());
            }
            *new = kept;
        }
        // Built-in kinds let their metadata ride along.
        "status" => {
            let mut kept = old.clone();
            move_field(new, &mut kept, "status");
            move_field(new, &mut kept, "metadata");
            *new = kept;
            kinds::prepare_status_update(new, old, resource);
        }
        "binding" => {}
        "ephemeralcontainers" | "resize" if resource.is("", "pods") => {
            pod::keep_all_but(new, old, subresource);
        }
        "approval" => certificate::keep_all_but_conditions(new, old),
        "finalize" => reset_status(new, old.get("status")),
        _ => {
            if resource.has_status() {
                reset_status(new, old.get("status"));
            }
            kinds::prepare_update(new, old, resource);
        }
    }
    // A pod that is given its node is still the pod that was asked for, and what a status write
    // changes of the metadata (a Deployment's revision) asks for nothing new.
    if !matches!(subresource, "binding" | "status")
        && (has_generation(resource) || resource.is("storage.k8s.io", "csidrivers"))
        && generation_changes(new, old, resource)
    {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        set_meta(new, "generation", Some(generation.saturating_add(1).into()));
    }
}

/// Gives `to` what `from` has of a field, or its absence.
fn move_field(from: &mut Value, to: &mut Value, field: &str) {
    let (Some(from), Some(to)) = (from.as_object_mut(), to.as_object_mut()) else {
        return;
    };
    match from.remove(field) {
        Some(value) => to.insert(field.to_owned(), value),
        None => to.remove(field),
    };
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
    // What of a class may change asks for nothing new.
    if resource.is("scheduling.k8s.io", "priorityclasses") {
        return false;
    }
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
        let labels = |object: &Value| object["metadata"].get("labels").cloned();
        // Of a custom resource even another way to write a number is a change.
        let same = if resource.is_custom() {
            rest(new) == rest(old)
        } else {
            fields_mean_the_same(&rest(new), &rest(old))
        };
        return !same
            || (resource.is("discovery.k8s.io", "endpointslices") && labels(new) != labels(old));
    }
    !means_the_same(&new["spec"], &old["spec"])
        || (GENERATION_FOLLOWS_ANNOTATIONS.contains(&address)
            && new["metadata"].get("annotations") != old["metadata"].get("annotations"))
}
