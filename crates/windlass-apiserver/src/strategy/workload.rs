//! What this version of Kubernetes does not keep yet: fields whose feature is off by default.

use serde_json::Value;

fn remove(from: &mut Value, field: &str) {
    if let Some(map) = from.as_object_mut() {
        map.remove(field);
    }
}

/// How many pods of a `StatefulSet` may be missing at once is not asked yet.
pub(super) fn drop_stateful_set(set: &mut Value) {
    if let Some(rolling) = set["spec"]["updateStrategy"].get_mut("rollingUpdate") {
        remove(rolling, "maxUnavailable");
    }
}

/// Leases are not yet given by a strategy of the server's.
pub(super) fn drop_lease(lease: &mut Value) {
    if let Some(spec) = lease.get_mut("spec") {
        remove(spec, "strategy");
        remove(spec, "preferredHolder");
    }
}
