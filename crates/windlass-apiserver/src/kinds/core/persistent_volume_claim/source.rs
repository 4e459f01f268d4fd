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
pub(crate) fn normalise_sources(claim: &mut Value, old: Option<&Value>) {
    let Some(spec) = claim["spec"].as_object_mut() else {
        return;
    };
    let had = |field: &str| old.is_some_and(|old| !old["spec"][field].is_null());
    let elsewhere = |reference: &Value| {
        let namespace = reference["namespace"].as_str();
        namespace.is_some_and(|namespace| !namespace.is_empty())
    };
    // What is in another namespace is not to be had, the feature being off.
    if !had("dataSourceRef") && spec.get("dataSourceRef").is_some_and(elsewhere) {
        spec.remove("dataSourceRef");
    }
    let is_old_way =
        !had("dataSource") && !had("dataSourceRef") && !spec.contains_key("dataSourceRef");
    if is_old_way
        && spec
            .get("dataSource")
            .is_some_and(|source| !is_known(source))
    {
        spec.remove("dataSource");
    }
    match (spec.get("dataSource"), spec.get("dataSourceRef")) {
        (Some(source), None) => {
            let source = source.clone();
            spec.insert("dataSourceRef".into(), source);
        }
        (None, Some(reference)) if !elsewhere(reference) => {
            let mut source = reference.clone();
            if let Some(source) = source.as_object_mut() {
                source.remove("namespace");
            }
            spec.insert("dataSource".into(), source);
        }
        _ => {}
    }
}
