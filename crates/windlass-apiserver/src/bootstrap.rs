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

/// The classes of what keeps a cluster going.
const PRIORITY_CLASSES: &[(&str, i64, &str)] = &[
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

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
    for (name, value, description) in PRIORITY_CLASSES {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {
                "name": name,
                "generation": 1,
                "managedFields": [{
                    "apiVersion": "scheduling.k8s.io/v1",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:description": {}, "f:preemptionPolicy": {}, "f:value": {}},
                    "manager": "kube-apiserver",
                    "operation": "Update",
                    "time": server.clock().now_seconds(),
                }],
            },
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        });
        let table = TableName::new("scheduling.k8s.io", "priorityclasses");
        store(server, &table, class, &[]);
    }
    for (table, object) in ROLES.iter() {
        store(server, table, object.clone(), &[]);
    }
}

fn store(server: &ApiServer, table: &TableName, mut object: Value, selectable: &[String]) {
    set_meta(&mut object, "uid", Some(server.random().uid().into()));
    let now = server.clock().now_seconds();
    set_meta(&mut object, "creationTimestamp", Some(now.into()));
    let key = Key::new(meta(&object, "namespace"), meta(&object, "name"));
    // The store is new, so the name is free.
    let _ = server.store().create(table, key, object, selectable);
}
