//! What a pod's node may say of it.

use std::net::IpAddr;

use serde_json::Value;

use super::dns;
use crate::validation::at::{At, Causes};
use crate::validation::label;

/// Conditions that are Kubernetes' own.
const SYSTEM: &[&str] = &["PodScheduled", "Ready", "Initialized"];

pub(crate) fn check(new: &Value, old: &Value, causes: &mut Causes) {
    let status = At::root(&new["status"], "status");
    for condition in status.items("conditions") {
        if !SYSTEM.contains(&condition.text("type")) {
            // Told by the name of the Go field.
            let kind = condition.text("type");
            for why in crate::names::qualified_errors(kind) {
                causes.push(condition.child("Type").invalid_value(kind, &why));
            }
        }
    }
    let nominated = status.child("nominatedNodeName");
    let bound = old["spec"]["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty());
    let set = nominated
        .value
        .as_str()
        .is_some_and(|node| !node.is_empty());
    if bound && set && nominated.value != &old["status"]["nominatedNodeName"] {
        let why = "may not be set on pods that are already bound to a node";
        causes.push(nominated.forbidden(why));
    }
    if new["status"]["qosClass"] != old["status"]["qosClass"] {
        causes.push(status.child("qosClass").invalid("field is immutable"));
    }
    ended(&status, old, causes);
    addresses(&status, causes);
}

/// A container that has ended for good does not run again.
fn ended(status: &At<'_, '_>, old: &Value, causes: &mut Causes) {
    let policy = old["spec"]["restartPolicy"].as_str().unwrap_or_default();
    for list in [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ] {
        let before = old["status"][list].as_array().into_iter().flatten();
        for (index, before) in before.enumerate() {
            let Some(terminated) = before["state"].get("terminated") else {
                continue;
            };
            let restarts = match policy {
                "Always" => true,
                "OnFailure" => terminated["exitCode"].as_i64().unwrap_or_default() != 0,
                _ => false,
            };
            let sidecar = list == "initContainerStatuses" && {
                let init = old["spec"]["initContainers"]
                    .as_array()
                    .into_iter()
                    .flatten();
                init.into_iter()
                    .any(|one| one["name"] == before["name"] && one["restartPolicy"] == "Always")
            };
            if (restarts && list != "ephemeralContainerStatuses") || sidecar {
                continue;
            }
            let runs = status.items(list).any(|now| {
                now.value["name"] == before["name"]
                    && now.value["state"].get("terminated").is_none()
            });
            if runs {
                let path = format!("{status}.{list}[{index}].state");
                let why = "may not be transitioned to non-terminated state";
                causes.push(crate::status::field::forbidden(path, why));
            }
        }
    }
}

fn addresses(status: &At<'_, '_>, causes: &mut Causes) {
    for (list, first) in [("podIPs", ""), ("hostIPs", "hostIP")] {
        let known = status.list(list);
        let text = |value: &Value| value["ip"].as_str().unwrap_or_default().to_owned();
        if let (false, Some(leading)) = (first.is_empty(), known.first())
            && text(leading) != status.text(first)
        {
            let path = format!("{status}.{list}[0].ip");
            let why = "must be equal to `hostIP`";
            causes.push(crate::status::field::invalid(path, &leading["ip"], why));
        }
        for (index, entry) in known.iter().enumerate() {
            let path = format!("{status}.{list}[{index}]");
            dns::address(&At::root(&entry["ip"], &path), causes);
        }
        let families: Vec<bool> = known
            .iter()
            .filter_map(|entry| text(entry).parse::<IpAddr>().ok())
            .map(|address| address.is_ipv6())
            .collect();
        if known.len() > 1
            && (families.len() > 2 || families.windows(2).any(|pair| pair[0] == pair[1]))
        {
            let why = "may specify no more than one IP for each IP family";
            causes.push(status.child(list).invalid(why));
        }
    }
}

/// The conditions of kinds that use the common form.
pub(crate) fn check_conditions(status: &At<'_, '_>, causes: &mut Causes) {
    for condition in status.items("conditions") {
        label::qualified(&condition.child("type"), causes);
        if !matches!(condition.text("status"), "True" | "False" | "Unknown") {
            let allowed = ["False", "True", "Unknown"];
            causes.push(condition.child("status").not_supported(&allowed));
        }
        condition.child("observedGeneration").nonnegative(causes);
        if condition.text("lastTransitionTime").is_empty() {
            causes.push(condition.child("lastTransitionTime").required(""));
        }
        if condition.text("reason").is_empty() {
            causes.push(condition.child("reason").required(""));
        }
    }
}
