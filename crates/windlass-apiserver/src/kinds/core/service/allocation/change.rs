//! What a change of a Service leaves out is what it was, and what no longer fits its type goes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{has_address, has_health_check, has_node_ports, is_external, text};

fn remove(spec: &mut Value, field: &str) {
    if let Some(spec) = spec.as_object_mut() {
        spec.remove(field);
    }
}

fn ports_mut(spec: &mut Value) -> impl Iterator<Item = &mut Value> {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    ports.into_iter().flatten()
}

fn addresses(spec: &Value) -> usize {
    spec["clusterIPs"].as_array().map_or(0, Vec::len)
}

/// Who names only the address means the list of it too.
pub(super) fn normalise_new(spec: &mut Value) {
    if !text(spec, "clusterIP").is_empty() && addresses(spec) == 0 {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
}

/// Brings the address and the list of addresses of a change into step, where only one was changed.
pub(super) fn normalise(spec: &mut Value, old: &Value) {
    let (now, before) = (
        text(spec, "clusterIP").to_owned(),
        text(old, "clusterIP").to_owned(),
    );
    if addresses(old) > 0 && addresses(spec) == 0 && now == before {
        spec["clusterIPs"] = old["clusterIPs"].clone();
    }
    if now != before && spec["clusterIPs"] == old["clusterIPs"] {
        if now.is_empty() {
            remove(spec, "clusterIPs");
        } else {
            spec["clusterIPs"] = json!([now]);
        }
    }
}

/// An update that leaves out what was given to the Service keeps it.
pub(super) fn keep_allocated(spec: &mut Value, old: &Value) {
    if has_address(spec) && has_address(old) {
        if text(spec, "clusterIP").is_empty() && !text(old, "clusterIP").is_empty() {
            spec["clusterIP"] = old["clusterIP"].clone();
        }
        if addresses(spec) == 0 && addresses(old) > 0 {
            spec["clusterIPs"] = old["clusterIPs"].clone();
        }
    }
    if has_node_ports(spec) && has_node_ports(old) {
        keep_node_ports(spec, old);
    }
    let unset = spec["healthCheckNodePort"].as_i64().unwrap_or_default() == 0;
    if has_health_check(spec) && has_health_check(old) && unset {
        spec["healthCheckNodePort"] = old["healthCheckNodePort"].clone();
    }
}

fn node_ports(spec: &Value) -> BTreeSet<i64> {
    let ports = spec["ports"].as_array().into_iter().flatten();
    ports
        .filter_map(|port| port["nodePort"].as_i64())
        .filter(|number| *number != 0)
        .collect()
}

/// A port is known by its name.
fn keep_node_ports(spec: &mut Value, old: &Value) {
    let used: BTreeSet<i64> = node_ports(spec)
        .intersection(&node_ports(old))
        .copied()
        .collect();
    let name = |port: &Value| text(port, "name").to_owned();
    let before: BTreeMap<String, i64> = old["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|port| Some((name(port), port["nodePort"].as_i64()?)))
        .collect();
    for port in ports_mut(spec) {
        if port["nodePort"].as_i64().unwrap_or_default() == 0
            && let Some(number) = before.get(&name(port)).filter(|one| !used.contains(one))
        {
            port["nodePort"] = (*number).into();
        }
    }
}

/// Drops what a change of type leaves without meaning, unless it was changed as well: then
/// validation has its say.
pub(crate) fn drop_dependent(new: &mut Value, old: &Value) {
    let before = &old["spec"];
    let spec = &mut new["spec"];
    if has_address(before) && !has_address(spec) {
        let same = |spec: &Value, field: &str| spec[field] == before[field];
        if same(spec, "clusterIP") && same(spec, "clusterIPs") {
            remove(spec, "clusterIP");
            remove(spec, "clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if same(spec, field) {
                remove(spec, field);
            }
        }
    }
    if has_node_ports(before)
        && !has_node_ports(spec)
        && node_ports(spec).is_subset(&node_ports(before))
    {
        for port in ports_mut(spec) {
            remove(port, "nodePort");
        }
    }
    let balanced = |spec: &Value| text(spec, "type") == "LoadBalancer";
    let drops: [(&str, bool); 4] = [
        (
            "healthCheckNodePort",
            has_health_check(before) && !has_health_check(spec),
        ),
        (
            "allocateLoadBalancerNodePorts",
            balanced(before) && !balanced(spec),
        ),
        ("loadBalancerClass", balanced(before) && !balanced(spec)),
        (
            "externalTrafficPolicy",
            is_external(before) && !is_external(spec),
        ),
    ];
    for (field, meaningless) in drops {
        if meaningless && spec[field] == before[field] {
            remove(spec, field);
        }
    }
    if !has_address(spec) {
        remove(spec, "internalTrafficPolicy");
    }
    if !balanced(spec) && new["status"].is_object() {
        new["status"]["loadBalancer"] = json!({});
    }
}
