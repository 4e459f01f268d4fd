//! What a claim begins with is said in two fields, which are kept in step.

use serde_json::Value;

/// Whether the older field may refer to it.
fn is_known(source: &Value) -> bool {
    let group = source["apiGroup"].as_str().unwrap_or_default();
    matches!(
        (group, source["kind"].as_str().unwrap_or_default()),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

/// Drops what the older field may not say, and fills in the one from the other.
pub(super) fn normalise_sources(claim: &mut Value, old: Option<&Value>) {
    let Some(spec) = claim["spec"].as_object_mut() else {
        return;
    };
    let in_use = old.is_some_and(|old| !old["spec"]["dataSource"].is_null());
    if !in_use
        && spec
            .get("dataSource")
            .is_some_and(|source| !is_known(source))
    {
        spec.remove("dataSource");
    }
    let local = |reference: &Value| {
        let namespace = reference["namespace"].as_str();
        namespace.is_none_or(str::is_empty)
    };
    match (spec.get("dataSource"), spec.get("dataSourceRef")) {
        (Some(source), None) => {
            let source = source.clone();
            spec.insert("dataSourceRef".into(), source);
        }
        (None, Some(reference)) if local(reference) => {
            let mut source = reference.clone();
            if let Some(source) = source.as_object_mut() {
                source.remove("namespace");
            }
            spec.insert("dataSource".into(), source);
        }
        _ => {}
    }
}
