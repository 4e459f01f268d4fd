//! What a write may change: the fields the server sets itself, generation, and the split of status from the rest.

mod disabled;

use serde_json::Value;

use crate::kinds::Writing;
use crate::object::{meta, set_meta};
use crate::registry::resource::Resource;

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

/// Sets what a new object gets from the server and drops what it may not bring; the client is warned
/// of what comes back.
pub(crate) fn prepare_create(
    object: &mut Value,
    resource: &Resource,
    writing: &Writing<'_>,
) -> Vec<String> {
    let strategy = resource.strategy;
    set_meta(object, "uid", Some(writing.random.uid().into()));
    set_meta(object, "selfLink", None);
    set_meta(
        object,
        "creationTimestamp",
        Some(writing.clock.now_seconds().into()),
    );
    if strategy.has_generation(has_spec(resource)) {
        set_meta(object, "generation", Some(1.into()));
    }
    // A node tells its status when it joins.
    if resource.has_status() && !strategy.keeps_new_status() {
        reset_status(object, None);
    }
    disabled::drop(object, strategy);
    strategy.prepare_create(object, writing)
}

fn has_spec(resource: &Resource) -> bool {
    resource.ty.field("spec").is_some()
}

/// Keeps what an update of the main resource or of one subresource may not change.
pub(crate) fn prepare_update(new: &mut Value, old: &Value, resource: &Resource, subresource: &str) {
    let strategy = resource.strategy;
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
        "status" if !strategy.status_takes_metadata() => {
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
            strategy.prepare_status_update(new, old);
        }
        "binding" => {}
        _ if strategy.prepare_subresource(new, old, subresource) => {}
        "finalize" => reset_status(new, old.get("status")),
        _ => {
            if resource.has_status() {
                reset_status(new, old.get("status"));
            }
            disabled::drop(new, strategy);
            strategy.prepare_update(new, old);
        }
    }
    // A pod that is given its node is still the pod that was asked for, and what a status write
    // changes of the metadata (a Deployment's revision) asks for nothing new.
    if !matches!(subresource, "binding" | "status")
        && strategy.counts_changes(has_spec(resource))
        && strategy.generation_changes(new, old, resource)
    {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        set_meta(new, "generation", Some(generation.saturating_add(1).into()));
    }
}

/// Gives `to` what `from` has of a field, or its absence.
pub(crate) fn move_field(from: &mut Value, to: &mut Value, field: &str) {
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
