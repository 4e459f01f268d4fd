//! Endpoints and `EndpointSlices`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::address::{check_endpoint_ip, ip_errors, lenient};
use super::at::{At, immutable};
use crate::kinds::core::service::validation::PROTOCOLS;
use crate::names;
use crate::status::{Cause, field};

const ADDRESS_TYPES: &[&str] = &["FQDN", "IPv4", "IPv6"];
/// How much a slice may hold.
const MAX_ENDPOINTS: usize = 1000;
const MAX_PORTS: usize = 20_000;
const MAX_ADDRESSES: usize = 100;
const MAX_HINTS: usize = 8;

pub(crate) fn check(endpoints: &Value, causes: &mut Vec<Cause>) {
    for subset in At::root(endpoints, "").then("subsets").elements() {
        let (ready, waiting) = (subset.child("addresses"), subset.child("notReadyAddresses"));
        if ready.len() == 0 && waiting.len() == 0 {
            let why = "must specify `addresses` or `notReadyAddresses`";
            causes.push(subset.required(why));
        }
        for address in ready.elements().chain(waiting.elements()) {
            check_address(&address, causes);
        }
        let ports = subset.child("ports");
        for port in ports.elements() {
            let name = port.child("name");
            if !name.as_text().is_empty() {
                name.each(names::label_errors, causes);
            } else if ports.len() > 1 {
                causes.push(name.required(""));
            }
            port.child("port").port_number(causes);
            port.child("protocol").one_of(PROTOCOLS, causes);
            let protocol = port.child("appProtocol");
            if protocol.is_set() {
                protocol.each(names::qualified_errors, causes);
            }
        }
    }
}

fn check_address(address: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let ip = address.child("ip");
    ip.each(ip_errors, causes);
    let host = address.child("hostname");
    if !host.as_text().is_empty() {
        host.each(names::label_errors, causes);
    }
    let node = address.child("nodeName");
    if node.is_set() {
        node.each(names::subdomain_errors, causes);
    }
    check_endpoint_ip(&ip, causes);
}

pub(crate) fn check_slice(slice: &Value, causes: &mut Vec<Cause>) {
    check_slice_parts(slice, true, causes);
}

fn check_slice_parts(slice: &Value, with_endpoints: bool, causes: &mut Vec<Cause>) {
    let root = At::root(slice, "");
    let kind = root.child("addressType");
    if kind.as_text().is_empty() {
        causes.push(kind.required(""));
    } else if !ADDRESS_TYPES.contains(&kind.as_text()) {
        causes.push(kind.not_supported(ADDRESS_TYPES));
    }
    check_slice_ports(&root.child("ports"), causes);
    let endpoints = root.child("endpoints");
    if endpoints.len() > MAX_ENDPOINTS {
        let path = endpoints.path();
        causes.push(field::too_many(path, endpoints.len(), MAX_ENDPOINTS as u64));
        return;
    }
    for endpoint in endpoints.elements().filter(|_| with_endpoints) {
        check_endpoint(&endpoint, kind.as_text(), causes);
    }
}

fn check_endpoint(endpoint: &At<'_, '_>, kind: &str, causes: &mut Vec<Cause>) {
    let addresses = endpoint.child("addresses");
    if addresses.len() == 0 {
        causes.push(addresses.required("must contain at least 1 address"));
    } else if addresses.len() > MAX_ADDRESSES {
        let path = addresses.path();
        causes.push(field::too_many(path, addresses.len(), MAX_ADDRESSES as u64));
    }
    // Addresses of a sort that nobody knows cannot be wrong.
    for address in addresses
        .elements()
        .filter(|_| ADDRESS_TYPES.contains(&kind))
    {
        if kind == "FQDN" {
            address.each(names::subdomain_errors, causes);
            if names::subdomain_errors(address.as_text()).is_empty()
                && !address.as_text().contains('.')
            {
                causes
                    .push(address.invalid(
                        "should be a domain with at least two segments separated by dots",
                    ));
            }
            continue;
        }
        let text = address.as_text();
        if lenient(text).is_none() {
            address.each(ip_errors, causes);
        } else {
            if !ip_errors(text).is_empty() || text.contains(':') != (kind == "IPv6") {
                // The list is named, not the address.
                let why = format!("must be an {kind} address");
                let path = addresses.path();
                causes.push(field::invalid(path, address.value, &why));
            }
            check_endpoint_ip(&address, causes);
        }
    }
    let node = endpoint.child("nodeName");
    if node.is_set() {
        node.each(names::subdomain_errors, causes);
    }
    let host = endpoint.child("hostname");
    if host.is_set() {
        host.each(names::label_errors, causes);
    }
    let hints = endpoint.child("hints");
    check_hints(&hints.child("forZones"), names::label_value_errors, causes);
    check_hints(&hints.child("forNodes"), names::subdomain_errors, causes);
}

fn check_hints(hints: &At<'_, '_>, check: fn(&str) -> Vec<String>, causes: &mut Vec<Cause>) {
    if hints.len() > MAX_HINTS {
        let path = hints.path();
        causes.push(field::too_many(path, hints.len(), MAX_HINTS as u64));
        return;
    }
    let mut seen = BTreeSet::new();
    for name in hints.elements().map(|hint| hint.then("name")) {
        name.each(check, causes);
        if !seen.insert(name.as_text()) {
            causes.push(name.duplicate());
        }
    }
}

fn check_slice_ports(ports: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if ports.len() > MAX_PORTS {
        let path = ports.path();
        causes.push(field::too_many(path, ports.len(), MAX_PORTS as u64));
        return;
    }
    let mut seen = BTreeSet::new();
    for port in ports.elements() {
        let name = port.child("name");
        if !name.as_text().is_empty() {
            name.each(names::label_errors, causes);
        }
        if !seen.insert(name.as_text()) {
            causes.push(name.duplicate());
        }
        port.child("protocol").one_of(PROTOCOLS, causes);
        let protocol = port.child("appProtocol");
        if protocol.is_set() {
            protocol.each(names::qualified_errors, causes);
        }
    }
}

/// Endpoints that stay are good enough.
pub(crate) fn check_slice_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    check_slice_parts(new, new["endpoints"] != old["endpoints"], causes);
    let kind = |slice| At::root(slice, "").then("addressType");
    immutable(&kind(new), &kind(old), causes);
}
