//! `IPAddresses` and `ServiceCIDRs`.

use serde_json::{Value, json};

use crate::names;
use crate::status::{Cause, field};
use crate::validation::address::{canonical_ip_errors, cidr, cidr_errors};
use crate::validation::at::{At, IMMUTABLE};

/// The name of an address is the address.
pub(crate) fn name_errors(name: &str) -> Vec<String> {
    canonical_ip_errors(name)
}

pub(crate) fn check_address(address: &Value, causes: &mut Vec<Cause>) {
    let parent = At::root(address, "").then("spec").then("parentRef");
    if !parent.is_set() {
        causes.push(parent.required(""));
        return;
    }
    let group = parent.child("group");
    if !group.as_text().is_empty() {
        group.each(names::subdomain_errors, causes);
    }
    for part in ["resource", "name"] {
        parent.child(part).name(names::segment_errors, causes);
    }
    let namespace = parent.child("namespace");
    if !namespace.as_text().is_empty() {
        namespace.each(names::segment_errors, causes);
    }
}

pub(crate) fn check_address_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let parent = &new["spec"]["parentRef"];
    if *parent != old["spec"]["parentRef"] {
        let text = |part: &str| parent[part].as_str().unwrap_or_default().to_owned();
        let shown = format!(
            "{{\"Group\":{:?},\"Resource\":{:?},\"Namespace\":{:?},\"Name\":{:?}}}",
            text("group"),
            text("resource"),
            text("namespace"),
            text("name")
        );
        causes.push(field::invalid_shown("spec.parentRef", &shown, IMMUTABLE));
    }
}

pub(crate) fn check_range(range: &Value, causes: &mut Vec<Cause>) {
    let list = At::root(range, "").then("spec").then("cidrs");
    let path = list.path();
    match list.len() {
        0 => causes.push(list.required("at least one CIDR required")),
        1 => {}
        2 => {
            let families = list.elements().filter_map(|one| cidr(one.as_text()));
            let sixes: Vec<bool> = families.map(|one| one.base.is_ipv6()).collect();
            if sixes.len() == 2 && sixes[0] == sixes[1] {
                causes.push(list.invalid(
                    "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
                ));
            }
        }
        _ => {
            let shown = json!({"CIDRs": list.value});
            causes.push(field::invalid(path, &shown, "may only hold up to 2 values"));
            return;
        }
    }
    for one in list.elements() {
        one.each(cidr_errors, causes);
    }
}

/// What a range has it keeps; another family may be added.
pub(crate) fn check_range_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let list = |range| At::root(range, "").then("spec").then("cidrs");
    let (now, then) = (list(new), list(old));
    for (now, then) in now.elements().zip(then.elements()) {
        if now.value != then.value {
            causes.push(now.invalid(IMMUTABLE));
        }
    }
}
