//! Built-in admission: what a new object passes, and what it is given, before it is stored.

use serde_json::{Map, Value, json};

use crate::object::{self, meta, meta_mut};
use crate::random::Random;
use crate::resource::Resource;
use crate::server::ApiServer;
use crate::status::{ApiError, Result, Subject};
use crate::store::{Key, Store, TableName};

/// Namespaces that cannot be deleted.
pub(crate) const IMMORTAL_NAMESPACES: &[&str] = &["default", "kube-system", "kube-public"];
/// Where a container finds its `ServiceAccount`'s token.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Seconds a mounted token lives; an hour and a bit, so that renewal never comes late.
const TOKEN_SECONDS: u64 = 3607;

/// Runs every plug-in that has a say in the creation of this kind.
pub(crate) fn admit(
    server: &ApiServer,
    resource: &Resource,
    namespace: &str,
    object: &mut Value,
) -> Result<()> {
    namespace_lifecycle(server.store(), resource, namespace, meta(object, "name"))?;
    if resource.is_custom() {
        return Ok(());
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => {
            service_account(server.store(), server.random(), resource, namespace, object)?;
            pod_defaults(object);
        }
        ("", "persistentvolumeclaims") => add_finalizer(object, "kubernetes.io/pvc-protection"),
        ("", "persistentvolumes") => add_finalizer(object, "kubernetes.io/pv-protection"),
        _ => {}
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

/// A pod runs as a `ServiceAccount` that exists, and gets its token mounted unless it or the
/// account says no.
fn service_account(
    store: &Store,
    random: &Random,
    resource: &Resource,
    namespace: &str,
    pod: &mut Value,
) -> Result<()> {
    let pod_name = meta(pod, "name").to_owned();
    let Some(spec) = pod["spec"].as_object_mut() else {
        return Ok(());
    };
    let name = spec.get("serviceAccountName").and_then(Value::as_str);
    let name = name
        .filter(|name| !name.is_empty())
        .unwrap_or("default")
        .to_owned();
    spec.insert("serviceAccountName".into(), name.as_str().into());
    spec.insert("serviceAccount".into(), name.as_str().into());
    let accounts = TableName::new("", "serviceaccounts");
    let Some(account) = store.get(&accounts, &Key::new(namespace, &name)) else {
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        );
        return Err(ApiError::forbidden(resource.subject(), &pod_name, &why));
    };
    let account = account.value();
    let automount = spec
        .get("automountServiceAccountToken")
        .or(account.get("automountServiceAccountToken"));
    if automount != Some(&Value::Bool(false)) {
        mount_token(spec, random);
    }
    Ok(())
}

fn mount_token(spec: &mut Map<String, Value>, random: &Random) {
    // A webhook may have added a container after the volume was made.
    let volumes = spec.get("volumes").and_then(Value::as_array);
    let known = volumes.into_iter().flatten().find_map(|volume| {
        let name = volume["name"].as_str()?;
        name.starts_with("kube-api-access-")
            .then(|| name.to_owned())
    });
    let is_new = known.is_none();
    let volume = known.unwrap_or_else(|| format!("kube-api-access-{}", random.name_suffix()));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            let Some(mounts) = mounts.as_array_mut() else {
                continue;
            };
            if mounts.iter().all(|mount| mount["mountPath"] != TOKEN_PATH) {
                mounts.push(json!({"name": volume, "readOnly": true, "mountPath": TOKEN_PATH}));
                mounted = true;
            }
        }
    }
    if !mounted || !is_new {
        return;
    }
    let namespace = json!({"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    let token = json!({"name": volume, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]}});
    let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
    if let Some(volumes) = volumes.as_array_mut() {
        volumes.push(token);
    }
}

/// The default priority, and the tolerations that keep a pod for five minutes on a node that fails.
fn pod_defaults(pod: &mut Value) {
    let Some(spec) = pod["spec"].as_object_mut() else {
        return;
    };
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
