//! One address per Service, and one `IPAddress` object per address.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{Plan, Refusal, has_address, text};
use crate::object::{meta, set_meta};
use crate::server::ApiServer;
use crate::status::{ApiError, field};
use crate::store::{Key, TableName};

/// Where the objects are kept.
fn table() -> TableName {
    TableName::new("networking.k8s.io", "ipaddresses")
}

/// The object that says whose an address is.
fn object(address: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {
            "name": address,
            "labels": {
                "ipaddress.kubernetes.io/ip-family": "IPv4",
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
    })
}

/// Decides the address of a Service, and which one it gives up.
pub(super) fn plan(
    server: &ApiServer,
    promised: &BTreeSet<String>,
    spec: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<Plan, Refusal> {
    let mut plan = Plan::default();
    let before = old.filter(|old| has_address(old));
    if !has_address(spec) {
        plan.released = before
            .map(|old| text(old, "clusterIP").to_owned())
            .filter(|address| !address.is_empty() && address != "None");
        return Ok(plan);
    }
    // A Service that has an address keeps it: validation says so when it asks for another.
    if before.is_some() || spec["clusterIPs"][0] == "None" {
        return Ok(plan);
    }
    let asked = spec["clusterIPs"][0]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let address = if asked.is_empty() && dry_run {
        server.service_range().base.to_string()
    } else if asked.is_empty() {
        let random = server.random();
        let taken = |address: Ipv4Addr| is_taken(server, promised, &address.to_string());
        let free = server
            .service_range()
            .pick(|below| random.between(0, below), taken);
        let Some(free) = free else {
            return Err(Refusal::Error(ApiError::internal(
                "failed to allocate a serviceIP for the service: range is full",
            )));
        };
        free.to_string()
    } else {
        check_asked(server, promised, &asked)?;
        asked
    };
    spec["clusterIPs"] = json!([address]);
    spec["clusterIP"] = address.as_str().into();
    plan.taken = Some(address);
    Ok(plan)
}

fn is_taken(server: &ApiServer, promised: &BTreeSet<String>, address: &str) -> bool {
    let object = || server.store().get(&table(), &Key::new("", address));
    promised.contains(address) || object().is_some()
}

fn refuse(address: &str, why: &str) -> Refusal {
    Refusal::Causes(vec![field::invalid(
        "spec.clusterIPs",
        &json!([address]),
        &format!("failed to allocate IP {address}: {why}"),
    )])
}

fn check_asked(
    server: &ApiServer,
    promised: &BTreeSet<String>,
    asked: &str,
) -> Result<(), Refusal> {
    match asked.parse::<Ipv4Addr>() {
        Ok(address) if server.service_range().has(address) => {}
        _ => {
            let why = "the provided network does not match the current range";
            return Err(refuse(asked, why));
        }
    }
    if is_taken(server, promised, asked) {
        return Err(refuse(asked, "provided IP is already allocated"));
    }
    Ok(())
}

/// Makes an address the Service's. Somebody may have created the object by hand since it was chosen.
pub(super) fn take(server: &ApiServer, service: &Value, address: &str) -> Result<(), Refusal> {
    let mut object = object(address, meta(service, "namespace"), meta(service, "name"));
    set_meta(&mut object, "uid", Some(server.random().uid().into()));
    let now = server.clock().now_seconds();
    set_meta(&mut object, "creationTimestamp", Some(now.clone().into()));
    set_meta(&mut object, "managedFields", Some(ownership(&now)));
    server
        .store()
        .create(&table(), Key::new("", address), object, &[])
        .map(drop)
        .map_err(|_| refuse(address, "provided IP is already allocated"))
}

/// The server itself wrote all of it.
fn ownership(now: &str) -> Value {
    let labels = json!({
        ".": {},
        "f:ipaddress.kubernetes.io/ip-family": {},
        "f:ipaddress.kubernetes.io/managed-by": {},
    });
    let parent = json!({".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {}});
    json!([{
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "networking.k8s.io/v1",
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": labels}, "f:spec": {"f:parentRef": parent}},
    }])
}

/// Gives an address back.
pub(super) fn free(server: &ApiServer, address: &str) {
    let key = Key::new("", address);
    // Somebody may change the object at the same moment: what is there now is what goes.
    while let Some(found) = server.store().get(&table(), &key) {
        let last = found.value();
        let gone = server
            .store()
            .delete(&table(), key.clone(), found.revision, last, &[]);
        if gone.is_ok() {
            break;
        }
    }
}
