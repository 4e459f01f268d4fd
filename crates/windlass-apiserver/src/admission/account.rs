//! The `ServiceAccount` a pod runs as: it must exist, its token is mounted unless it or the pod
//! says no, and its secrets are used for pulling unless the pod brings its own.

use serde_json::{Map, Value, json};

use super::{refused, shown_name};
use crate::object::meta;
use crate::random::Random;
use crate::registry::resource::Resource;
use crate::status::Result;
use crate::store::{Key, Store, TableName};

/// Where a container finds its `ServiceAccount`'s token.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Seconds a mounted token lives; an hour and a bit, so that renewal never comes late.
const TOKEN_SECONDS: u64 = 3607;
const TOKEN_VOLUME: &str = "kube-api-access-";
const MIRROR: &str = "kubernetes.io/config.mirror";
const STRICT: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) fn admit(
    store: &Store,
    random: &Random,
    resource: &Resource,
    namespace: &str,
    pod: &mut Value,
) -> Result<()> {
    if pod["metadata"]["annotations"].get(MIRROR).is_some() {
        return check_mirror(&pod["spec"]).map_err(|why| refused(resource, shown_name(pod), why));
    }
    let pod_name = shown_name(pod).to_owned();
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
        return Err(refused(resource, &pod_name, &why));
    };
    let account = account.value();
    let automount = spec
        .get("automountServiceAccountToken")
        .or(account.get("automountServiceAccountToken"));
    if automount != Some(&Value::Bool(false)) {
        mount_token(spec, random);
    }
    let pulls = account["imagePullSecrets"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let own = spec.get("imagePullSecrets").and_then(Value::as_array);
    if own.is_none_or(Vec::is_empty) && !pulls.is_empty() {
        spec.insert("imagePullSecrets".into(), pulls.into());
    }
    if account["metadata"]["annotations"][STRICT]
        .as_str()
        .is_some_and(is_true)
        && let Some(why) = unmountable(&pod["spec"], &account)
    {
        return Err(refused(resource, &pod_name, &why));
    }
    Ok(())
}

/// What Go takes for true.
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// A pod that only mirrors what a node runs anyway has nothing of the cluster's.
fn check_mirror(spec: &Value) -> Result<(), &'static str> {
    if !spec["serviceAccountName"]
        .as_str()
        .unwrap_or_default()
        .is_empty()
    {
        return Err("a mirror pod may not reference service accounts");
    }
    if uses_secrets(spec) {
        return Err("a mirror pod may not reference secrets");
    }
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    let sources = volumes.flat_map(|volume| {
        volume["projected"]["sources"]
            .as_array()
            .into_iter()
            .flatten()
    });
    for source in sources {
        if source.get("serviceAccountToken").is_some() {
            return Err("a mirror pod may not use ServiceAccountToken volume projections");
        }
    }
    Ok(())
}

fn uses_secrets(spec: &Value) -> bool {
    let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let of_volumes = list(spec, "volumes").iter().any(|volume| {
        volume.get("secret").is_some()
            || list(&volume["projected"], "sources")
                .iter()
                .any(|source| source.get("secret").is_some())
    });
    let of_containers = ["containers", "initContainers"]
        .iter()
        .flat_map(|name| list(spec, name))
        .any(|container| {
            list(&container, "env")
                .iter()
                .any(|variable| variable["valueFrom"].get("secretKeyRef").is_some())
                || list(&container, "envFrom")
                    .iter()
                    .any(|source| source.get("secretRef").is_some())
        });
    of_volumes || of_containers || !list(spec, "imagePullSecrets").is_empty()
}

/// What a pod uses that its account, which is strict, does not name.
fn unmountable(spec: &Value, account: &Value) -> Option<String> {
    let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let own = meta(account, "name");
    let allowed = |list_name: &str, name: &Value| {
        list(account, list_name)
            .iter()
            .any(|known| known["name"] == *name)
    };
    for volume in list(spec, "volumes") {
        let Some(secret) = volume.get("secret").map(|secret| &secret["secretName"]) else {
            continue;
        };
        if !allowed("secrets", secret) {
            return Some(format!(
                "volume with secret.secretName={secret} is not allowed because service account {own} does not reference that secret"
            ));
        }
    }
    for (name, kind) in [
        ("initContainers", "init container"),
        ("containers", "container"),
    ] {
        for container in list(spec, name) {
            let who = format!("{kind} {}", text(&container["name"]));
            for variable in list(&container, "env") {
                let secret = &variable["valueFrom"]["secretKeyRef"]["name"];
                if secret.is_string() && !allowed("secrets", secret) {
                    return Some(format!(
                        "{who} with envVar {} referencing secret.secretName={secret} is not allowed because service account {own} does not reference that secret",
                        text(&variable["name"])
                    ));
                }
            }
            for source in list(&container, "envFrom") {
                let secret = &source["secretRef"]["name"];
                if secret.is_string() && !allowed("secrets", secret) {
                    return Some(format!(
                        "{who} with envFrom referencing secret.secretName={secret} is not allowed because service account {own} does not reference that secret"
                    ));
                }
            }
        }
    }
    for (index, pull) in list(spec, "imagePullSecrets").iter().enumerate() {
        if !allowed("imagePullSecrets", &pull["name"]) {
            return Some(format!(
                "imagePullSecrets[{index}].name={} is not allowed because service account {own} does not reference that imagePullSecret",
                pull["name"]
            ));
        }
    }
    None
}

fn mount_token(spec: &mut Map<String, Value>, random: &Random) {
    let there = spec
        .get("volumes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|volume| volume["name"].as_str())
        .find(|name| name.starts_with(TOKEN_VOLUME))
        .map(str::to_owned);
    let exists = there.is_some();
    let volume = there.unwrap_or_else(|| format!("{TOKEN_VOLUME}{}", random.name_suffix()));
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
    if !mounted || exists {
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
