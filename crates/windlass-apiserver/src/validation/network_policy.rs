//! `NetworkPolicies`.

use serde_json::Value;

use super::address::{cidr, cidr_errors};
use super::place::{At, PORT_RANGE};
use super::selector;
use crate::names;
use crate::status::Cause;

const PROTOCOLS: &[&str] = &["TCP", "UDP", "SCTP"];
const TYPES: &[&str] = &["Ingress", "Egress"];

pub(super) fn check(policy: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(policy).get("spec");
    selector::check(&spec.get("podSelector"), causes);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(direction).items() {
            for port in rule.get("ports").items() {
                check_port(&port, causes);
            }
            for peer in rule.get(peers).items() {
                check_peer(&peer, causes);
            }
        }
    }
    let types = spec.get("policyTypes");
    if types.len() > 2 {
        causes.push(types.invalid("may not specify more than two policyTypes"));
        return;
    }
    for kind in types.items() {
        kind.maybe_one_of(TYPES, causes);
    }
}

fn check_port(port: &At<'_>, causes: &mut Vec<Cause>) {
    port.get("protocol").maybe_one_of(PROTOCOLS, causes);
    let (number, end) = (port.get("port"), port.get("endPort"));
    if !number.is_set() {
        if end.is_set() {
            causes.push(end.invalid("may not be specified when `port` is not specified"));
        }
        return;
    }
    if number.value.is_string() {
        if end.is_set() {
            causes.push(end.invalid("may not be specified when `port` is non-numeric"));
        }
        number.each(names::port_name_errors, causes);
        return;
    }
    number.port_number(causes);
    if end.is_set() {
        if end.int() < number.int() {
            // Kubernetes shows the port it should not be below.
            let shown = At::new(end.path.as_str(), number.value);
            causes.push(shown.invalid("must be greater than or equal to `port`"));
        }
        if !(1..=65535).contains(&end.int()) {
            causes.push(end.invalid(PORT_RANGE));
        }
    }
}

fn check_peer(peer: &At<'_>, causes: &mut Vec<Cause>) {
    let mut given = 0;
    for part in ["podSelector", "namespaceSelector"] {
        let part = peer.get(part);
        if part.is_set() {
            given += 1;
            selector::check(&part, causes);
        }
    }
    let block = peer.get("ipBlock");
    if block.is_set() {
        given += 1;
        check_block(&block, causes);
    }
    if given == 0 {
        causes.push(peer.required("must specify a peer"));
    } else if block.is_set() && given > 1 {
        causes.push(peer.forbidden("may not specify both ipBlock and another peer"));
    }
}

fn check_block(block: &At<'_>, causes: &mut Vec<Cause>) {
    let range = block.get("cidr");
    if range.text().is_empty() {
        causes.push(range.required(""));
        return;
    }
    let before = causes.len();
    range.each(cidr_errors, causes);
    let Some(outer) = cidr(range.text()).filter(|_| causes.len() == before) else {
        return;
    };
    for except in block.get("except").items() {
        let before = causes.len();
        except.each(cidr_errors, causes);
        let inner = cidr(except.text()).filter(|_| causes.len() == before);
        if inner.is_some_and(|inner| !outer.strictly_contains(inner)) {
            causes.push(except.invalid("must be a strict subset of `cidr`"));
        }
    }
}
