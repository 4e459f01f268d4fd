//! `NetworkPolicies`.

use serde_json::Value;

use crate::names;
use crate::status::Cause;
use crate::validation::address::{cidr, cidr_errors};
use crate::validation::at::{At, PORT_RANGE};
use crate::validation::label;

const PROTOCOLS: &[&str] = &["TCP", "UDP", "SCTP"];
const TYPES: &[&str] = &["Ingress", "Egress"];

pub(crate) fn check(policy: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(policy, "").then("spec");
    label::selector(&spec.child("podSelector"), causes);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.child(direction).elements() {
            for port in rule.child("ports").elements() {
                check_port(&port, causes);
            }
            for peer in rule.child(peers).elements() {
                check_peer(&peer, causes);
            }
        }
    }
    let types = spec.child("policyTypes");
    if types.len() > 2 {
        causes.push(types.invalid("may not specify more than two policyTypes"));
        return;
    }
    for kind in types.elements() {
        kind.one_of_if_set(TYPES, causes);
    }
}

fn check_port(port: &At<'_, '_>, causes: &mut Vec<Cause>) {
    port.child("protocol").one_of_if_set(PROTOCOLS, causes);
    let (number, end) = (port.child("port"), port.child("endPort"));
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
        if end.as_int() < number.as_int() {
            // Kubernetes shows the port it should not be below.
            let shown = end.with(number.value);
            causes.push(shown.invalid("must be greater than or equal to `port`"));
        }
        if !(1..=65535).contains(&end.as_int()) {
            causes.push(end.invalid(PORT_RANGE));
        }
    }
}

fn check_peer(peer: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let mut given = 0;
    for part in ["podSelector", "namespaceSelector"] {
        let part = peer.child(part);
        if part.is_set() {
            given += 1;
            label::selector(&part, causes);
        }
    }
    let block = peer.child("ipBlock");
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

fn check_block(block: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let range = block.child("cidr");
    if range.as_text().is_empty() {
        causes.push(range.required(""));
        return;
    }
    let before = causes.len();
    range.each(cidr_errors, causes);
    let Some(outer) = cidr(range.as_text()).filter(|_| causes.len() == before) else {
        return;
    };
    for except in block.child("except").elements() {
        let before = causes.len();
        except.each(cidr_errors, causes);
        let inner = cidr(except.as_text()).filter(|_| causes.len() == before);
        if inner.is_some_and(|inner| !outer.strictly_contains(inner)) {
            causes.push(except.invalid("must be a strict subset of `cidr`"));
        }
    }
}
