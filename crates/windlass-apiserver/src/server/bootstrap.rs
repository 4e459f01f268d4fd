//! What every cluster starts with: its namespaces, the `kubernetes` Service and the range addresses
//! come from, priorities of requests and pods, the API groups, and the roles and bindings without
//! which nobody but the administrator could do anything.
//!
//! The roles are `facts/roles.json`, read off the real server by `scripts/roles`; the rest is
//! `facts/objects.json`, by `scripts/start-up-objects`. What roles mean is worked out once per
//! process: a test starts many servers.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::auth::rbac;
use crate::kinds::core::service::allocation as services;
use crate::object::{meta, set_meta};
use crate::server::ApiServer;
use crate::store::{Key, TableName};

/// Everything but roles and bindings.
static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../facts/objects.json"))
        .expect("facts/objects.json is generated and checked in: it parses")
});

/// The roles and bindings, with the rules of aggregated roles filled in.
static ROLES: LazyLock<Vec<(TableName, Value)>> = LazyLock::new(|| {
    let roles: Vec<Value> = serde_json::from_str(include_str!("../../facts/roles.json"))
        .expect("facts/roles.json is generated and checked in: it parses");
    rbac::aggregated(roles)
        .into_iter()
        .map(|object| (table_of(&object), object))
        .collect()
});

/// What they say.
static POLICY: LazyLock<rbac::Policy> =
    LazyLock::new(|| rbac::Policy::of(ROLES.iter().map(|(_, object)| object)));

fn table_of(object: &Value) -> TableName {
    let kind = object["kind"].as_str().unwrap_or_default();
    TableName::new(rbac::GROUP, &format!("{}s", kind.to_lowercase()))
}

/// What roles and bindings say in a server that has those of every cluster.
pub(crate) fn policy() -> rbac::Policy {
    POLICY.clone()
}

/// Stores what every cluster has.
pub(crate) fn run(server: &ApiServer) {
    let known = server.registry().known();
    for object in OBJECTS.iter() {
        let resource = known.all().find(|resource| {
            object["kind"] == *resource.kind && object["apiVersion"] == *resource.api_version()
        });
        let Some(resource) = resource else {
            continue;
        };
        let mut object = object.clone();
        set_times(&mut object, &server.clock().now_seconds());
        resource.strategy.at_start_up(server, &mut object);
        store(server, &resource.table, object, &resource.selectable);
    }
    for (table, object) in ROLES.iter() {
        store(server, table, object.clone(), &[]);
    }
}

/// The `kubernetes` Service has the first address of the range.
pub(crate) fn set_address(server: &ApiServer, service: &mut Value) {
    let address = server.service_range().first().to_string();
    service["spec"]["clusterIPs"] = json!([address]);
    service["spec"]["clusterIP"] = address.as_str().into();
    services::claim(server, service, &address);
}

/// What the facts leave out: when it was written, and since when it holds.
fn set_times(object: &mut Value, now: &str) {
    for (list, field) in [
        ("/metadata/managedFields", "time"),
        ("/status/conditions", "lastTransitionTime"),
    ] {
        let entries = object.pointer_mut(list).and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            entry[field] = now.into();
        }
    }
}

fn store(server: &ApiServer, table: &TableName, mut object: Value, selectable: &[String]) {
    let key = Key::new(meta(&object, "namespace"), meta(&object, "name"));
    // A store that outlived its server has most of it already.
    if server.store().get(table, &key).is_some() {
        return;
    }
    set_meta(&mut object, "uid", Some(server.random().uid().into()));
    let now = server.clock().now_seconds();
    set_meta(&mut object, "creationTimestamp", Some(now.into()));
    // The name is free: nobody else uses the store yet.
    let _ = server.store().create(table, key, object, selectable);
}
