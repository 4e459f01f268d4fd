//! Nodes, the classes of priorities and runtimes, budgets of disruption, and leases.

use std::collections::BTreeSet;

use serde_json::Value;

use super::at::{At, Causes};
use super::pod::{check_effect, check_tolerations};
use super::resources::{self, Of};
use super::{amount, internal, label};
use crate::names;
use crate::status::field;

/// The highest priority somebody other than Kubernetes may ask for.
const MAX_PRIORITY: i64 = 1_000_000_000;
/// The classes every cluster has, and what they are worth.
pub(crate) const SYSTEM_PRIORITIES: &[(&str, i64)] = &[
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

/// What is wrong with a node. Its taints are told as if they were metadata.
pub(crate) fn node(node: &Value, is_new: bool, causes: &mut Causes) {
    let at = At::root(node, "");
    taints(node, causes);
    for list in ["capacity", "allocatable"] {
        for (name, value) in node["status"][list].as_object().into_iter().flatten() {
            let path = format!("status.{list}.{name}");
            resources::amount(&At::root(value, &path), name, causes);
        }
    }
    if !is_new {
        let mut seen = BTreeSet::new();
        let status = at.child("status");
        for address in status.items("addresses") {
            if !seen.insert(address.value.to_string()) {
                let shown = internal::show(address.value, "core.NodeAddress");
                let mut cause = address.duplicate();
                cause.message = format!("Duplicate value: {shown}");
                causes.push(cause);
            }
        }
    }
    let spec = at.child("spec");
    for range in spec.items("podCIDRs") {
        let text = range.value.as_str().unwrap_or_default();
        if !is_cidr(text) {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            causes.push(range.invalid(why));
        }
    }
    let ranges = spec.list("podCIDRs");
    let ipv6 = |range: &Value| range.as_str().is_some_and(|text| text.contains(':'));
    if ranges.len() > 2 || (ranges.len() == 2 && ipv6(&ranges[0]) == ipv6(&ranges[1])) {
        let why = "may specify no more than one CIDR for each IP family";
        causes.push(spec.child("podCIDRs").invalid(why));
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|length| length <= most)
}

fn taints(node: &Value, causes: &mut Causes) {
    let spec = &node["spec"];
    let at = At::root(spec, "metadata");
    let mut seen = BTreeSet::new();
    for taint in at.items("taints") {
        label::qualified(&taint.child("key"), causes);
        let wrong = names::label_value_errors(taint.text("value"));
        if !wrong.is_empty() {
            causes.push(taint.child("value").invalid(&wrong.join(";")));
        }
        check_effect(&taint.child("effect"), causes);
        if !seen.insert((taint.text("key"), taint.text("effect"))) {
            let shown = internal::show(taint.value, "core.Taint");
            let mut cause = taint.duplicate();
            cause.message =
                format!("Duplicate value: {shown}: taints must be unique by key and effect pair");
            causes.push(cause);
        }
    }
}

/// A node keeps the addresses of its pods and its provider's name for it.
pub(crate) fn node_update(new: &Value, old: &Value, causes: &mut Causes) {
    let (spec, before) = (At::root(&new["spec"], "spec"), &old["spec"]);
    if before.get("podCIDRs").is_some() && spec.value.get("podCIDRs") != before.get("podCIDRs") {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        causes.push(spec.child("podCIDRs").forbidden(why));
    }
    let provider = before["providerID"].as_str().unwrap_or_default();
    if !provider.is_empty() && spec.text("providerID") != provider {
        let why = "node updates may not change providerID except from \"\" to valid";
        causes.push(spec.child("providerID").forbidden(why));
    }
    // They were looked at with the rest of the node already.
    taints(new, causes);
}

pub(crate) fn priority_class(class: &Value, causes: &mut Causes) {
    let at = At::root(class, "");
    let metadata = at.child("metadata");
    let name = metadata.text("name");
    let value = at.int("value").unwrap_or_default();
    if name.starts_with("system-") {
        let why = match SYSTEM_PRIORITIES.iter().find(|(known, _)| *known == name) {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, wanted)) if *wanted != value => {
                Some(format!("value of {name} PriorityClass must be {wanted}"))
            }
            Some(_) if at.flag("globalDefault") => Some(format!(
                "globalDefault of {name} PriorityClass must be false"
            )),
            Some(_) => None,
        };
        if let Some(why) = why {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            );
            causes.push(metadata.child("name").forbidden(&why));
        }
    } else if value > MAX_PRIORITY {
        let why = format!("maximum allowed value of a user defined priority is {MAX_PRIORITY}");
        causes.push(at.child("value").forbidden(&why));
    }
    if at.has("preemptionPolicy") {
        at.child("preemptionPolicy")
            .one_of(&["PreemptLowerPriority", "Never"], causes);
    }
}

pub(crate) fn priority_class_update(new: &Value, old: &Value, causes: &mut Causes) {
    let at = At::root(new, "");
    if new["value"] != old["value"] {
        causes.push(
            at.child("value")
                .forbidden("may not be changed in an update."),
        );
    }
    if new["preemptionPolicy"] != old["preemptionPolicy"] {
        causes.push(at.child("preemptionPolicy").invalid("field is immutable"));
    }
}

pub(crate) fn runtime_class(class: &Value, causes: &mut Causes) {
    let at = At::root(class, "");
    match at.text("handler") {
        "" => causes.push(at.child("handler").required("")),
        name => at
            .child("handler")
            .complain(names::label_errors(name), causes),
    }
    if at.has("overhead") {
        // Told as the limits that it is checked as.
        let limits = serde_json::json!({"limits": class["overhead"]["podFixed"]});
        let overhead = At::root(&limits, "overhead");
        resources::requirements(&overhead, Of::Container, &BTreeSet::new(), causes);
    }
    let scheduling = at.child("scheduling");
    label::labels(&scheduling.child("nodeSelector"), causes);
    check_tolerations(&scheduling, "tolerations", causes);
    let mut seen = BTreeSet::new();
    for toleration in scheduling.items("tolerations") {
        let key = ["key", "operator", "value", "effect"].map(|field| toleration.text(field));
        if !seen.insert(key) {
            let shown = internal::show(toleration.value, "core.Toleration");
            let mut cause = toleration.duplicate();
            cause.message = format!("Duplicate value: {shown}");
            causes.push(cause);
        }
    }
}

pub(crate) fn budget(budget: &Value, causes: &mut Causes) {
    let spec = At::root(&budget["spec"], "spec");
    if spec.has("minAvailable") && spec.has("maxUnavailable") {
        let shown = internal::show(spec.value, "policy.PodDisruptionBudgetSpec");
        let why = "minAvailable and maxUnavailable cannot be both set";
        causes.push(spec.invalid_shown(&shown, why));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        if let Some(number) = spec.get(field) {
            amount::check(&number, causes);
            amount::at_most_all(&number, causes);
        }
    }
    label::selector(&spec.child("selector"), causes);
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    spec.child("unhealthyPodEvictionPolicy")
        .one_of_if_set(&policies, causes);
}

pub(crate) fn lease(lease: &Value, causes: &mut Causes) {
    let spec = At::root(&lease["spec"], "spec");
    let lasts = spec.child("leaseDurationSeconds");
    if lasts.value.as_i64().is_some_and(|seconds| seconds <= 0) {
        causes.push(lasts.invalid("must be greater than 0"));
    }
    let changed = spec.child("leaseTransitions");
    if changed.value.as_i64().is_some_and(|times| times < 0) {
        causes.push(changed.invalid("must be greater than or equal to 0"));
    }
}

/// A field of the object itself that may not change.
pub(crate) fn immutable(new: &Value, old: &Value, name: &str, causes: &mut Causes) {
    if new[name] != old[name] {
        causes.push(field::invalid(name, &new[name], "field is immutable"));
    }
}
