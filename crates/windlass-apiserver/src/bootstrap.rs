//! What every cluster starts with: its namespaces, and the roles and bindings without which nobody
//! but the administrator could do anything.
//!
//! The roles are `facts/roles.json`, read off the real server by `scripts/roles`. What they mean is
//! worked out once per process: a test starts many servers.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::auth::rbac;
use crate::object::{meta, set_meta};
use crate::server::ApiServer;
use crate::store::{Key, TableName};

const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// The roles and bindings, with the rules of aggregated roles filled in.
static ROLES: LazyLock<Vec<(TableName, Value)>> = LazyLock::new(|| {
    let roles: Vec<Value> = serde_json::from_str(include_str!("../facts/roles.json"))
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
    let selectable = ["status.phase".to_owned()];
    for name in NAMESPACES {
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        store(
            server,
            &TableName::new("", "namespaces"),
            namespace,
            &selectable,
        );
    }
    for (table, object) in ROLES.iter() {
        store(server, table, object.clone(), &[]);
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
