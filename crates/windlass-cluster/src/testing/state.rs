//! The state of a cluster in a form in which two runs can be compared.
//!
//! What differs from run to run by nature is taken out: uids, versions, times, addresses,
//! certificates and the random parts of names. What is left is what a user would say the cluster looks like.

use std::collections::BTreeMap;

use kube::api::{DynamicObject, ListParams};
use kube::discovery::{Discovery, verbs};
use kube::{Api, Client};
use serde_json::Value;

/// Kinds that tell what happened, not what is.
const NOT_STATE: &[&str] = &["Event", "Lease"];
/// Fields that are different in every run.
const FLEETING: &[&str] = &[
    "uid",
    "resourceVersion",
    "managedFields",
    "generateName",
    "podIP",
    "podIPs",
    "containerID",
    "ip",
    "collisionCount",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
];

/// How the name of the volume begins in which a pod finds its `ServiceAccount`'s token.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// How a certificate or a key begins in base64: each is made anew, and no two are alike.
const ENCODED_PEM: &str = "LS0tLS1CRUdJTi";

/// Every object, as sorted lines: `kind namespace/name` and its content. Fields of these names are left
/// out beside those that are different in every run.
pub(super) async fn of(client: &Client, fleeting: &[String]) -> kube::Result<Vec<String>> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let mut objects: Vec<(String, Value)> = Vec::new();
    for group in discovery.groups_alphabetical() {
        for (resource, capabilities) in group.recommended_resources() {
            if !capabilities.supports_operation(verbs::LIST)
                || NOT_STATE.contains(&resource.kind.as_str())
            {
                continue;
            }
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            for object in api.list(&ListParams::default()).await?.items {
                let value = serde_json::to_value(&object).map_err(kube::Error::SerdeError)?;
                if !is_history(&resource.kind, &value) {
                    objects.push((resource.kind.clone(), value));
                }
            }
        }
    }
    // Generated names are replaced wherever they stand, longest first: one may contain another.
    let mut generated: BTreeMap<String, String> = BTreeMap::new();
    for (kind, object) in &objects {
        for volume in object["spec"]["volumes"].as_array().into_iter().flatten() {
            if let Some(name) = volume["name"].as_str()
                && name.starts_with(TOKEN_VOLUME)
            {
                generated.insert(name.to_owned(), format!("{TOKEN_VOLUME}*"));
            }
        }
        // The address of a Service is the name of another object.
        if let ("IPAddress", Some(address)) = (kind.as_str(), object["metadata"]["name"].as_str()) {
            generated.insert(address.to_owned(), "<address>".to_owned());
        }
        // An id may stand anywhere, as in the id of a container that somebody wrote down.
        if let Some(uid) = object["metadata"]["uid"].as_str() {
            generated.insert(uid.to_owned(), "<uid>".to_owned());
        }
        // With the number of collisions, the hash of a template depends on what was there before.
        if let Some(hash) = object["metadata"]["labels"]["pod-template-hash"].as_str() {
            generated.insert(hash.to_owned(), "<hash>".to_owned());
        }
        if let (Some(name), Some(base)) = (
            object["metadata"]["name"].as_str(),
            generate_name(kind, object).as_deref(),
        ) {
            generated.insert(name.to_owned(), format!("{base}*"));
        }
    }
    let mut generated: Vec<(String, String)> = generated.into_iter().collect();
    generated.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let mut lines: Vec<String> = objects
        .into_iter()
        .map(|(kind, mut object)| {
            if matches!(kind.as_str(), "ReplicaSet" | "EndpointSlice") {
                // It counts the steps of roll-outs, which depend on who was quicker.
                object["metadata"]["generation"] = Value::Null;
                if object["status"].is_object() {
                    object["status"]["observedGeneration"] = Value::Null;
                }
            }
            forget(&mut object, fleeting);
            let mut line = format!("{kind} {object}");
            for (name, placeholder) in &generated {
                line = line.replace(name, placeholder);
            }
            line
        })
        .collect();
    lines.sort();
    Ok(lines)
}

/// How a name begins whose end is fleeting: the API server gave it one, or an operator names the pods
/// and volumes of its object itself, one after the other.
fn generate_name(kind: &str, object: &Value) -> Option<String> {
    if let Some(base) = object["metadata"]["generateName"].as_str() {
        return Some(base.to_owned());
    }
    let owner = &object["metadata"]["ownerReferences"][0];
    let is_custom = owner["apiVersion"].as_str()?.contains('.');
    let base = format!("{}-", owner["name"].as_str()?);
    let name = object["metadata"]["name"].as_str()?;
    let applies = matches!(kind, "Pod" | "PersistentVolumeClaim") && is_custom;
    (applies && name.starts_with(&base)).then_some(base)
}

/// A set of a roll-out that is over: how many there were depends on who was quicker.
fn is_history(kind: &str, object: &Value) -> bool {
    let owner = &object["metadata"]["ownerReferences"][0]["kind"];
    kind == "ReplicaSet" && owner == "Deployment" && object["spec"]["replicas"] == 0
}

fn forget(value: &mut Value, fleeting: &[String]) {
    match value {
        Value::Object(map) => {
            // A set by their types, in the order in which they first came.
            if let Some(Value::Array(conditions)) = map.get_mut("conditions") {
                conditions.sort_by_key(|condition| condition["type"].as_str().map(str::to_owned));
            }
            map.retain(|key, value| {
                let is_address = key == "addresses" && value[0].is_string();
                let is_fleeting = FLEETING.contains(&key.as_str()) || fleeting.contains(key);
                !is_fleeting && !is_time(key) && !is_address
            });
            map.values_mut().for_each(|value| forget(value, fleeting));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| forget(item, fleeting)),
        // An id that an outside system gave.
        Value::String(text) if (12..=16).contains(&text.len()) && is_hex(text) => {
            "an id".clone_into(text);
        }
        Value::String(text) if text.starts_with(ENCODED_PEM) => {
            "a certificate or a key".clone_into(text);
        }
        _ => {}
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_time(key: &str) -> bool {
    key.ends_with("Time")
        || key.ends_with("Timestamp")
        || key.ends_with("At")
        || key.ends_with("-time")
}
