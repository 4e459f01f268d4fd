//! Services.

mod addresses;
mod update;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::kinds::core::service::allocation::{has_health_check, is_external, is_headless};
use crate::names;
use crate::status::{Cause, field};
use crate::validation::address::{check_endpoint_ip, cidr_errors, ip_errors, is_ip};
use crate::validation::at::At;
use crate::validation::label;

pub(crate) use addresses::check as check_addresses;
pub(crate) use update::check as check_update;

pub(crate) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const TRAFFIC: &[&str] = &["Cluster", "Local"];
const DISTRIBUTION: &[&str] = &["PreferClose", "PreferSameZone", "PreferSameNode"];
const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
/// Seconds a client may be sent to the same endpoint.
const AFFINITY_SECONDS: i64 = 86_400;

/// What is wrong with a Service.
pub(crate) fn check(service: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let root = At::root(service, "");
    let spec = root.child("spec");
    let kind = spec.child("type");
    let headless = is_headless(spec.value);
    let ports = spec.child("ports");
    if ports.len() == 0 && !headless && kind.as_text() != "ExternalName" {
        causes.push(ports.required(""));
    }
    match kind.as_text() {
        "LoadBalancer" | "NodePort" if spec.child("clusterIP").as_text() == "None" => {
            let why = format!("may not be set to 'None' for {} services", kind.as_text());
            causes.push(field::invalid("spec.clusterIPs[0]", &"None".into(), &why));
        }
        "ExternalName" => check_external_name(&spec, causes),
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for port in ports.elements() {
        check_port(&port, ports.len() > 1, &mut seen, causes);
    }
    label::labels(&spec.child("selector"), causes);
    check_affinity(&spec, causes);
    causes.extend(addresses::check(spec.value, old.map(|old| &old["spec"])));
    for address in spec.child("externalIPs").elements() {
        let before = causes.len();
        address.each(ip_errors, causes);
        if causes.len() == before {
            check_endpoint_ip(&address, causes);
        }
    }
    kind.one_of(TYPES, causes);
    check_repeated_ports(&spec, causes);
    check_balancer(&spec, causes);
    check_traffic(&spec, causes);
}

fn check_external_name(spec: &At<'_, '_>, causes: &mut Vec<Cause>) {
    for part in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let part = spec.child(part);
        if !part.is_zero() {
            causes.push(part.forbidden("may not be set for ExternalName services"));
        }
    }
    let name = spec.child("externalName");
    // A dot at the end says that the name is whole.
    let plain = name.as_text().strip_suffix('.').unwrap_or(name.as_text());
    let shown = Value::from(plain);
    name.with(&shown).name(names::subdomain_errors, causes);
}

fn check_port<'a>(
    port: &At<'_, 'a>,
    needs_name: bool,
    seen: &mut BTreeSet<&'a str>,
    causes: &mut Vec<Cause>,
) {
    let name = port.child("name");
    if !name.as_text().is_empty() {
        name.each(names::label_errors, causes);
        if !seen.insert(name.as_text()) {
            causes.push(name.duplicate());
        }
    } else if needs_name {
        causes.push(name.required(""));
    }
    port.child("port").port_number(causes);
    port.child("protocol").one_of(PROTOCOLS, causes);
    port.child("targetPort").port(causes);
    let protocol = port.child("appProtocol");
    if protocol.is_set() {
        protocol.each(names::qualified_errors, causes);
    }
}

fn check_affinity(spec: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let affinity = spec.child("sessionAffinity");
    affinity.one_of(&["ClientIP", "None"], causes);
    if affinity.as_text() == "ClientIP" {
        let config = spec.child("sessionAffinityConfig").then("clientIP");
        let seconds = config.child("timeoutSeconds");
        if !(1..=AFFINITY_SECONDS).contains(&seconds.as_int()) {
            let why = format!("must be greater than 0 and less than {AFFINITY_SECONDS}");
            causes.push(seconds.invalid_int(&why));
        }
    }
}

fn check_repeated_ports(spec: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let ports = spec.child("ports");
    if spec.child("type").as_text() == "ClusterIP" {
        for port in ports.elements().map(|port| port.then("nodePort")) {
            if !port.is_zero() {
                causes.push(port.forbidden("may not be used when `type` is 'ClusterIP'"));
            }
        }
    }
    let mut seen = BTreeSet::new();
    for port in ports.elements() {
        let number = port.child("nodePort");
        if !number.is_zero() && !seen.insert((port.child("protocol").as_text(), number.as_int())) {
            causes.push(number.duplicate());
        }
    }
    let mut seen = BTreeSet::new();
    for port in ports.elements() {
        let (protocol, number) = (
            port.child("protocol").as_text(),
            port.child("port").as_int(),
        );
        if !seen.insert((protocol, number)) {
            // Kubernetes shows the Go struct it compared.
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":\"{protocol}\",\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            causes.push(field::duplicate_shown(port.path(), &shown));
        }
    }
}

fn check_balancer(spec: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let balanced = spec.child("type").as_text() == "LoadBalancer";
    let ranges = At::root(
        spec.child("loadBalancerSourceRanges").value,
        "spec.LoadBalancerSourceRanges",
    );
    if ranges.len() > 0 && !balanced {
        causes.push(ranges.forbidden(ONLY_BALANCED));
    }
    for range in ranges.elements() {
        let plain = Value::from(range.as_text().trim());
        range.with(&plain).each(cidr_errors, causes);
    }
    for part in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        let part = spec.child(part);
        if part.is_set() && !balanced {
            causes.push(part.forbidden(ONLY_BALANCED));
        }
    }
    let class = spec.child("loadBalancerClass");
    if class.is_set() && balanced {
        class.each(names::qualified_errors, causes);
    }
}

fn check_traffic(spec: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let external = spec.child("externalTrafficPolicy");
    if is_external(spec.value) {
        external.one_of(TRAFFIC, causes);
    } else if !external.is_zero() {
        causes.push(external.invalid("may only be set for externally-accessible services"));
    }
    let check = spec.child("healthCheckNodePort");
    if has_health_check(spec.value) {
        if check.is_zero() {
            causes.push(check.required(""));
        } else {
            check.port_number(causes);
        }
    } else if !check.is_zero() {
        causes.push(check.invalid(
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
        ));
    }
    spec.child("internalTrafficPolicy")
        .one_of_if_set(TRAFFIC, causes);
    spec.child("trafficDistribution")
        .one_of_if_set(DISTRIBUTION, causes);
}

/// What is wrong with the status of something that a load balancer stands before.
pub(crate) fn check_status(service: &Value, _: &Value, causes: &mut Vec<Cause>) {
    let root = At::root(service, "");
    let ingress = root.child("status").then("loadBalancer").then("ingress");
    if ingress.len() > 0 && service["spec"]["type"] != "LoadBalancer" {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        causes.push(ingress.forbidden(why));
        return;
    }
    for point in ingress.elements() {
        check_ingress_point(&point, causes);
    }
}

fn check_ingress_point(point: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let (address, mode) = (point.child("ip"), point.child("ipMode"));
    let has_address = !address.as_text().is_empty();
    if has_address {
        address.each(ip_errors, causes);
    }
    match (mode.is_set(), has_address) {
        (false, true) => causes.push(mode.required("must be specified when `ip` is set")),
        (true, false) => causes.push(mode.forbidden("may not be specified when `ip` is not set")),
        (true, true) => mode.one_of_if_set(&["Proxy", "VIP"], causes),
        (false, false) => {}
    }
    check_hostname(&point.child("hostname"), causes);
}

/// The name of a load balancer, if it has one.
pub(crate) fn check_hostname(name: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if name.as_text().is_empty() {
        return;
    }
    name.each(names::subdomain_errors, causes);
    if is_ip(name.as_text()) {
        causes.push(name.invalid("must be a DNS name, not an IP address"));
    }
}

/// What to tell a client who asks for what is on its way out, or means nothing.
pub(crate) fn warnings(spec: &Value) -> Vec<String> {
    let root = json!({"spec": spec});
    let root = At::root(&root, "");
    let spec = root.child("spec");
    let headless = is_headless(spec.value);
    let kind = spec.child("type");
    let external_ips = spec.child("externalIPs").len() > 0;
    let mut warnings = Vec::new();
    let mut warn = |told: bool, what: &str| {
        if told {
            warnings.push(what.to_owned());
        }
    };
    let balancer = !spec.child("loadBalancerIP").as_text().is_empty();
    warn(
        headless && balancer,
        "spec.loadBalancerIP is ignored for headless services",
    );
    warn(
        headless && external_ips,
        "spec.externalIPs is ignored for headless services",
    );
    warn(
        headless && spec.child("sessionAffinity").as_text() != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    let named = kind.as_text() == "ExternalName";
    warn(
        external_ips && !headless && !named,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    warn(
        named && external_ips,
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    warn(
        !named && !spec.child("externalName").as_text().is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    warn(
        spec.child("trafficDistribution").as_text() == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    warnings
}
