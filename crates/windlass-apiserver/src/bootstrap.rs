//! What every cluster starts with.

use serde_json::json;

use crate::server::ApiServer;
use crate::store::{Key, TableName};

const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// Stores the namespaces every cluster has.
pub(crate) fn run(server: &ApiServer) {
    let table = TableName::new("", "namespaces");
    for name in NAMESPACES {
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "uid": server.random().uid(),
                "creationTimestamp": server.clock().now_seconds(),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        // The store is new, so the name is free.
        let _ = server.store().create(
            &table,
            Key::new("", name),
            namespace,
            &["status.phase".to_owned()],
        );
    }
}
