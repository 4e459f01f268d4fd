//! Built-in admission: what a new object passes, and what it is given, before it is stored.

mod account;
mod class;
mod limits;
mod priority;
mod runtime;

use serde_json::{Value, json};

use crate::object::{meta, meta_mut};
use crate::resource::Resource;
use crate::server::ApiServer;
use crate::status::{ApiError, Result, Subject};
use crate::store::{Key, Store, TableName};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// Namespaces that cannot be deleted.
pub(crate) const IMMORTAL_NAMESPACES: &[&str] = &["default", "kube-system", "kube-public"];
/// Runs every plug-in that has a say in the creation of this kind.
pub(crate) fn admit(
    server: &ApiServer,
    resource: &Resource,
    namespace: &str,
    object: &mut Value,
) -> Result<()> {
    // A name that is still to be generated is shown by its base.
    let name = match meta(object, "name") {
        "" => meta(object, "generateName"),
        name => name,
    };
    namespace_lifecycle(server.store(), resource, namespace, name)?;
    if resource.is_custom() {
        return Ok(());
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => {
            limits::admit(server.store(), namespace, object);
            account::admit(server.store(), server.random(), resource, namespace, object)?;
            priority::admit(server.store(), resource, object)?;
            tolerate_failing_nodes(object);
            runtime::admit(server.store(), resource, object)?;
        }
        ("", "persistentvolumeclaims") => {
            class::default_storage(server.store(), object);
            add_finalizer(object, "kubernetes.io/pvc-protection");
        }
        ("", "nodes") => taint_until_ready(object),
        ("", "persistentvolumes") => add_finalizer(object, "kubernetes.io/pv-protection"),
        ("storage.k8s.io", "volumeattributesclasses") => {
            add_finalizer(object, "kubernetes.io/vac-protection");
        }
        ("networking.k8s.io", "ingresses") => class::default_ingress(server.store(), object),
        _ => {}
    }
    Ok(())
}

/// Refuses a new object that its kind allows and the cluster does not.
pub(crate) fn validate(
    server: &ApiServer,
    resource: &Resource,
    namespace: &str,
    object: &Value,
) -> Result<()> {
    if resource.is("", "pods") || resource.is("", "persistentvolumeclaims") {
        limits::check(server.store(), resource, namespace, object)?;
    } else if resource.is("scheduling.k8s.io", "priorityclasses") {
        priority::check_default(server.store(), resource, object, true)?;
    }
    Ok(())
}

/// What a change is given before it is looked at.
pub(crate) fn admit_change(resource: &Resource, subresource: &str, new: &mut Value, old: &Value) {
    if resource.is("", "pods") && subresource.is_empty() {
        priority::keep(new, old);
        tolerate_failing_nodes(new);
    }
}

/// Refuses a deletion that the cluster does not allow.
pub(crate) fn validate_delete(resource: &Resource, name: &str) -> Result<()> {
    if resource.is("scheduling.k8s.io", "priorityclasses") {
        priority::check_delete(resource, name)?;
    }
    Ok(())
}

/// What a plug-in says no with.
fn refused(resource: &Resource, name: &str, why: &str) -> ApiError {
    ApiError::forbidden(resource.subject(), name, why)
}

/// Refuses a change that its kind allows and the cluster does not.
pub(crate) fn validate_change(
    server: &ApiServer,
    resource: &Resource,
    new: &Value,
    old: &Value,
) -> Result<()> {
    if resource.is("", "persistentvolumeclaims") {
        class::check_growth(server.store(), resource, new, old)?;
        limits::check(server.store(), resource, meta(new, "namespace"), new)?;
    } else if resource.is("scheduling.k8s.io", "priorityclasses") {
        priority::check_default(server.store(), resource, new, false)?;
    }
    Ok(())
}

/// Creating needs a namespace that exists and is not going away.
fn namespace_lifecycle(
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
    if found.terminating {
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

/// A pod stays for five minutes on a node that fails, unless it says otherwise.
fn tolerate_failing_nodes(pod: &mut Value) {
    let Some(spec) = pod["spec"].as_object_mut() else {
        return;
    };
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if let Some(tolerations) = tolerations.as_array_mut() {
        for key in [NOT_READY, "node.kubernetes.io/unreachable"] {
            let covered = tolerations.iter().any(|toleration| {
                let unset = |field: &str| toleration[field].as_str().is_none_or(str::is_empty);
                (toleration["key"] == key || unset("key"))
                    && (toleration["effect"] == "NoExecute" || unset("effect"))
            });
            if !covered {
                tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
            }
        }
    }
}

/// Nothing is sent to a new node until somebody has seen that it is ready.
fn taint_until_ready(node: &mut Value) {
    let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
    if !node["spec"].is_object() {
        node["spec"] = json!({});
    }
    let taints = &mut node["spec"]["taints"];
    match taints.as_array_mut() {
        Some(taints) => {
            let there = |one: &Value| one["key"] == NOT_READY && one["effect"] == "NoSchedule";
            if !taints.iter().any(there) {
                taints.push(taint);
            }
        }
        None => *taints = json!([taint]),
    }
}

/// Storage that is in use is not taken away from under its user.
fn add_finalizer(object: &mut Value, name: &str) {
    let finalizers = meta_mut(object)
        .entry("finalizers")
        .or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && finalizers.iter().all(|known| known != name)
    {
        finalizers.push(name.into());
    }
}
