//! Built-in admission: what every write passes before it is stored.

use serde_json::{Value, json};

use crate::object;
use crate::resource::Resource;
use crate::status::{ApiError, Result, Subject};
use crate::store::{Key, Store, TableName};

/// Namespaces that cannot be deleted.
pub(crate) const IMMORTAL_NAMESPACES: &[&str] = &["default", "kube-system", "kube-public"];

/// Creating needs a namespace that exists and is not going away.
pub(crate) fn namespace_lifecycle(
    store: &Store,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<()> {
    if namespace.is_empty() {
        return Ok(());
    }
    let namespaces = Subject {
        group: "",
        kind: "namespaces",
    };
    let Some(found) = store.get(&TableName::new("", "namespaces"), &Key::new("", namespace)) else {
        return Err(ApiError::not_found(namespaces, namespace));
    };
    if object::is_terminating(&found.value()) {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut error = ApiError::forbidden(resource.subject(), name, &why);
        error.set_causes(vec![json!({
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        })]);
        return Err(error);
    }
    Ok(())
}

/// What a new pod gets: its ServiceAccount's name, the default priority, and the tolerations that
/// keep it for five minutes on a node that fails.
pub(crate) fn admit_pod(pod: &mut Value) {
    let Some(spec) = pod["spec"].as_object_mut() else {
        return;
    };
    if !spec.contains_key("serviceAccountName") {
        spec.insert("serviceAccountName".into(), "default".into());
        spec.insert("serviceAccount".into(), "default".into());
    }
    spec.entry("enableServiceLinks").or_insert(true.into());
    spec.entry("priority").or_insert(0.into());
    spec.entry("preemptionPolicy")
        .or_insert("PreemptLowerPriority".into());
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if let Some(tolerations) = tolerations.as_array_mut() {
        for key in [
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable",
        ] {
            let covered = tolerations.iter().any(|toleration| {
                (toleration["key"] == key || toleration.get("key").is_none())
                    && (toleration["effect"] == "NoExecute" || toleration.get("effect").is_none())
            });
            if !covered {
                tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
            }
        }
    }
}
