//! The life of a CRD: served once established, gone only after its objects.

use serde_json::{Value, json};

use crate::apply::{self, Managers, Writer};
use crate::crd;
use crate::object::{self, set_meta};
use crate::resource::Resource;
use crate::server::ApiServer;
use crate::store::{Key, Stored, TableName, WriteError};

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

fn definitions() -> TableName {
    TableName::new(GROUP, PLURAL)
}

/// What follows from a write to a CRD, or to the last object of one.
pub(crate) fn after_write(server: &ApiServer, resource: &Resource, stored: &Stored, deleted: bool) {
    if resource.is(GROUP, PLURAL) {
        let definition = stored.value();
        if deleted {
            withdraw(server, &definition);
        } else if object::is_terminating(&definition) {
            clean_up(server, &definition);
        } else {
            establish(server, &stored.key, &definition);
        }
    } else if resource.is_custom() && deleted {
        let name = format!("{}.{}", resource.plural, resource.group);
        if let Some(definition) = server.store().get(&definitions(), &Key::new("", &name)) {
            let definition = definition.value();
            if object::is_terminating(&definition) {
                clean_up(server, &definition);
            }
        }
    }
}

/// Serves the versions of a CRD, and says so in its status.
fn establish(server: &ApiServer, key: &Key, definition: &Value) {
    let (group, plural) = names(definition);
    server
        .registry()
        .set_custom(&group, &plural, crd::resources(definition));
    let conditions = definition["status"]["conditions"].as_array();
    let established = conditions.is_some_and(|conditions| {
        conditions
            .iter()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    });
    let names_told = definition["status"]["acceptedNames"] == definition["spec"]["names"];
    if established && names_told {
        return;
    }
    let status = crd::established_status(definition, &server.clock().now_seconds());
    amend(server, key, |definition| {
        definition["status"] = status.clone();
    });
    // Watches of the new kind know nothing of what was before it.
    server.store().open(&TableName::new(&group, &plural));
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
            let (group, plural) = names(definition);
            let versions = crd::resources(definition);
            server.registry().set_custom(&group, &plural, versions);
            clean_up(server, definition);
        } else {
            establish(server, key, definition);
        }
    }
}

fn withdraw(server: &ApiServer, definition: &Value) {
    let (group, plural) = names(definition);
    server.registry().set_custom(&group, &plural, Vec::new());
}

/// Deletes the objects of a CRD that is going away; lets it go when none is left.
fn clean_up(server: &ApiServer, definition: &Value) {
    let (group, plural) = names(definition);
    let table = TableName::new(&group, &plural);
    let Ok(listing) = server.store().list(&table, None, None, None) else {
        return;
    };
    let mut left = 0;
    for object in listing.objects {
        let mut value = object.value();
        let result = if object::finalizers(&value).is_empty() {
            server
                .store()
                .delete(&table, object.key.clone(), object.revision, value, &[])
                .map(|_| false)
        } else if object::is_terminating(&value) {
            Ok(true)
        } else {
            set_meta(
                &mut value,
                "deletionTimestamp",
                Some(server.clock().now_seconds().into()),
            );
            set_meta(&mut value, "deletionGracePeriodSeconds", Some(0.into()));
            server
                .store()
                .update(&table, object.key.clone(), object.revision, value, &[])
                .map(|_| true)
        };
        // An object that changed meanwhile is seen to by the write that changed it.
        left += usize::from(result.unwrap_or(true));
    }
    if left > 0 {
        return;
    }
    let name = format!("{plural}.{group}");
    let key = Key::new("", &name);
    amend(server, &key, |definition| {
        let kept: Vec<Value> = object::finalizers(definition)
            .into_iter()
            .filter(|finalizer| *finalizer != crd::CLEANUP_FINALIZER)
            .map(Value::from)
            .collect();
        set_meta(
            definition,
            "finalizers",
            (!kept.is_empty()).then(|| json!(kept)),
        );
    });
    let Some(found) = server.store().get(&definitions(), &key) else {
        return;
    };
    let value = found.value();
    if object::is_terminating(&value) && object::finalizers(&value).is_empty() {
        let gone = server
            .store()
            .delete(&definitions(), key, found.revision, value, &[]);
        if gone.is_ok() {
            withdraw(server, definition);
        }
    }
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
