//! The life of a CRD: served once established, gone only after its objects.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::apply::{self, Managers, Writer};
use crate::crd;
use crate::object::{self, set_meta};
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::store::{Key, Stored, TableName, WriteError};

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

fn definitions() -> TableName {
    TableName::new(GROUP, PLURAL)
}

/// What follows from a write to a CRD, or to the last object of one.
pub(crate) fn after_write(server: &ApiServer, resource: &Resource, stored: &Stored, deleted: bool) {
    if !resource.is_custom() {
        let definition = stored.value();
        if deleted {
            withdraw(server, &definition);
        } else if object::is_terminating(&definition) {
            clean_up(server, &stored.key);
        } else {
            establish(server, &stored.key);
            establish_others(server, &definition);
        }
    } else if deleted {
        let name = format!("{}.{}", resource.plural, resource.group);
        let key = Key::new("", &name);
        if find(server, &key).is_some_and(|definition| object::is_terminating(&definition)) {
            clean_up(server, &key);
        }
    }
}

fn find(server: &ApiServer, key: &Key) -> Option<Value> {
    let found = server.store().get(&definitions(), key)?;
    Some(found.value())
}

fn all(server: &ApiServer) -> Vec<Arc<Stored>> {
    let listing = server.store().list(&definitions(), None, None, None);
    listing.map(|listing| listing.objects).unwrap_or_default()
}

/// Gives a CRD the names it can have, says so in its status, and serves it if it got them all.
fn establish(server: &ApiServer, key: &Key) {
    let Some(definition) = find(server, key) else {
        return;
    };
    let others: Vec<Value> = all(server)
        .iter()
        .filter(|other| other.key != *key)
        .map(|other| other.value())
        .collect();
    let now = server.clock().now_seconds();
    let status = windlass_schema::status_of(&definition, &others, &now);
    if status != definition["status"] {
        amend(server, key, |definition| {
            definition["status"] = status.clone();
        });
    }
    if let Some(definition) = find(server, key) {
        serve(server, &definition);
    }
}

/// A name that one CRD no longer has may be what another waits for.
fn establish_others(server: &ApiServer, definition: &Value) {
    for other in all(server) {
        let value = other.value();
        let waits = value["spec"]["names"] != value["status"]["acceptedNames"];
        let same_group = value["spec"]["group"] == definition["spec"]["group"];
        let same = value["metadata"]["name"] == definition["metadata"]["name"];
        if waits && same_group && !same && !object::is_terminating(&value) {
            establish(server, &other.key);
        }
    }
}

/// Serves the versions of an established CRD as it is now, unless they are served so already.
fn serve(server: &ApiServer, definition: &Value) {
    let conditions = definition["status"]["conditions"].as_array();
    let established = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    if !established {
        return;
    }
    let (group, plural) = names(definition);
    let known = server.registry().known();
    let before: Vec<_> = known
        .all()
        .filter(|resource| resource.is_version_of(&group, &plural))
        .filter_map(|resource| resource.custom.clone())
        .collect();
    let terminating = object::is_terminating(definition);
    for custom in &before {
        custom.terminating.store(terminating, Ordering::Relaxed);
    }
    let as_said = |custom: &Arc<crd::CustomVersion>| custom.is_said_by(definition);
    if !before.is_empty() && before.iter().all(as_said) {
        return;
    }
    let table = crd::table(&group, &plural);
    let is_empty = !server.store().any(&table, |_| true);
    server
        .registry()
        .set_custom(&group, &plural, crd::resources(definition, is_empty));
    if before.is_empty() && is_empty {
        // Watches of the new kind know nothing of what was before it.
        server.store().open(&table);
    }
    // Watches of what was served before end.
    server.store().changed(&table).notify_waiters();
}

/// Serves what the stored definitions define, and nothing else; goes on where a server that ended
/// was interrupted.
pub(crate) fn restore(server: &ApiServer) {
    let Ok(listing) = server.store().list(&definitions(), None, None, None) else {
        return;
    };
    let stored: Vec<_> = listing
        .objects
        .iter()
        .map(|object| (object.key.clone(), object.value()))
        .collect();
    let known = server.registry().known();
    for resource in known.all().filter(|resource| resource.is_custom()) {
        let defined = |(_, definition): &(Key, Value)| {
            names(definition) == (resource.group.clone(), resource.plural.clone())
        };
        if !stored.iter().any(defined) {
            server
                .registry()
                .set_custom(&resource.group, &resource.plural, Vec::new());
        }
    }
    for (key, definition) in &stored {
        if object::is_terminating(definition) {
            clean_up(server, key);
        } else {
            establish(server, key);
        }
    }
}

fn withdraw(server: &ApiServer, definition: &Value) {
    let (group, plural) = names(definition);
    server.registry().set_custom(&group, &plural, Vec::new());
    let table = crd::table(&group, &plural);
    server.store().changed(&table).notify_waiters();
    establish_others(server, definition);
}

/// Deletes the objects of a CRD that is going away; lets it go when none is left.
fn clean_up(server: &ApiServer, key: &Key) {
    let Some(definition) = find(server, key) else {
        return;
    };
    if !object::finalizers(&definition).contains(&windlass_schema::CLEANUP_FINALIZER) {
        return;
    }
    serve(server, &definition);
    let now = server.clock().now_seconds();
    let conditions = definition["status"]["conditions"].as_array();
    let established = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let (reason, message) = if established {
        let (reason, message) = (
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
        );
        amend(server, key, |definition| {
            windlass_schema::set_condition(
                definition,
                "Terminating",
                "True",
                reason,
                message,
                &now,
            );
        });
        if delete_objects(server, &definition, &now) > 0 {
            return;
        }
        ("InstanceDeletionCompleted", "removed all instances")
    } else {
        ("NeverEstablished", "resource was never established")
    };
    amend(server, key, |definition| {
        windlass_schema::set_condition(definition, "Terminating", "False", reason, message, &now);
        let kept: Vec<Value> = object::finalizers(definition)
            .into_iter()
            .filter(|finalizer| *finalizer != windlass_schema::CLEANUP_FINALIZER)
            .map(Value::from)
            .collect();
        set_meta(
            definition,
            "finalizers",
            (!kept.is_empty()).then(|| json!(kept)),
        );
    });
    let Some(found) = server.store().get(&definitions(), key) else {
        return;
    };
    let value = found.value();
    if object::is_terminating(&value) && object::finalizers(&value).is_empty() {
        let key = key.clone();
        let gone = server
            .store()
            .delete(&definitions(), key, found.revision, value, &[]);
        if gone.is_ok() {
            withdraw(server, &definition);
        }
    }
}

/// Deletes what can be, marks what is held; tells how many are left.
fn delete_objects(server: &ApiServer, definition: &Value, now: &str) -> usize {
    let (group, plural) = names(definition);
    let table = crd::table(&group, &plural);
    let Ok(listing) = server.store().list(&table, None, None, None) else {
        return 0;
    };
    let known = server.registry().known();
    let selectable = known
        .all()
        .find(|resource| resource.is_custom() && resource.is_version_of(&group, &plural))
        .map(|resource| resource.selectable.clone())
        .unwrap_or_default();
    let mut left = 0;
    for object in listing.objects {
        let mut value = object.value();
        let (store, key) = (server.store(), object.key.clone());
        let result = if object::finalizers(&value).is_empty() {
            store
                .delete(&table, key, object.revision, value, &selectable)
                .map(|_| false)
        } else if object::is_terminating(&value) {
            Ok(true)
        } else {
            let generation = value["metadata"]["generation"].as_i64().unwrap_or_default();
            let next = generation.saturating_add(1);
            set_meta(&mut value, "generation", Some(next.into()));
            set_meta(&mut value, "deletionTimestamp", Some(now.into()));
            set_meta(&mut value, "deletionGracePeriodSeconds", Some(0.into()));
            store
                .update(&table, key, object.revision, value, &selectable)
                .map(|_| true)
        };
        // An object that changed meanwhile is seen to by the write that changed it.
        left += usize::from(result.unwrap_or(true));
    }
    left
}

/// Changes a CRD on the server's own account, which is recorded as such.
fn amend(server: &ApiServer, key: &Key, change: impl Fn(&mut Value)) {
    let Some(resource) = server.registry().find(GROUP, "v1", PLURAL) else {
        return;
    };
    let now = server.clock().now_seconds();
    let writer = Writer {
        manager: "kube-apiserver",
        api_version: "apiextensions.k8s.io/v1",
        subresource: "status",
        now: Some(&now),
    };
    for _ in 0..16 {
        let Some(found) = server.store().get(&definitions(), key) else {
            return;
        };
        let old = found.value();
        let mut new = old.clone();
        change(&mut new);
        if new == old {
            return;
        }
        let managers = Managers::read(&old["metadata"]["managedFields"]);
        let managers = apply::record_update(
            &old,
            &new,
            &resource.ty,
            managers,
            &writer,
            &[&["metadata"]],
        );
        set_meta(&mut new, "managedFields", Some(managers.write()));
        match server
            .store()
            .update(&definitions(), key.clone(), found.revision, new, &[])
        {
            Err(WriteError::Changed) => {}
            _ => return,
        }
    }
}

fn names(definition: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&definition["spec"]["group"]),
        text(&definition["spec"]["names"]["plural"]),
    )
}
