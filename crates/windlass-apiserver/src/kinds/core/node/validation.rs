//! What is wrong with nodes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::core::pod::validation::check_effect;
use crate::names;
use crate::validation::at::{At, Causes};
use crate::validation::{internal, label, resources};

/// What is wrong with a node. Its taints are reported as if they were metadata.
pub(super) fn check(node: &Value, is_new: bool, causes: &mut Causes) {
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
pub(super) fn check_update(new: &Value, old: &Value, causes: &mut Causes) {
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
