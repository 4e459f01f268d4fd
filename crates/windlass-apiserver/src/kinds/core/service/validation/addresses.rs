//! The address, the list of addresses and the families of a Service, which must agree.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::core::service::allocation::{has_address, is_headless};
use crate::status::Cause;
use crate::validation::address::ip_errors;
use crate::validation::at::At;

const FAMILIES: &[&str] = &["IPv4", "IPv6"];
const POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];

fn is_six(address: &str) -> bool {
    address.contains(':')
}

/// What is wrong with the addresses of a Service's spec.
pub(crate) fn check(spec: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    if !has_address(spec) {
        return causes;
    }
    let spec = At::root(spec, "spec");
    let (address, list) = (spec.child("clusterIP"), spec.child("clusterIPs"));
    if !address.as_text().is_empty() {
        if list.len() == 0 {
            causes.push(list.required(""));
        } else if list.value[0] != *address.value {
            causes.push(list.invalid("first value must match `clusterIP`"));
        }
    } else if list.len() > 0 {
        causes.push(list.invalid("must be empty when `clusterIP` is not specified"));
    }
    let mut seen = BTreeSet::new();
    let families = spec.child("ipFamilies");
    for family in families.elements() {
        family.one_of_if_set(FAMILIES, &mut causes);
        if !seen.insert(family.as_text()) {
            causes.push(family.duplicate());
        }
    }
    spec.child("ipFamilyPolicy")
        .one_of_if_set(POLICIES, &mut causes);
    if check_each(&list, old, &mut causes) {
        check_together(&spec, &list, &families, &mut causes);
    }
    causes
}

/// Each address by itself; whether they are good enough to be looked at together.
fn check_each(list: &At<'_, '_>, old: Option<&Value>, causes: &mut Vec<Cause>) -> bool {
    let mut good = true;
    for (index, address) in list.elements().enumerate() {
        if index == 0 && address.as_text() == "None" {
            if list.len() > 1 {
                good = false;
                causes.push(list.invalid("'None' must be the first and only value"));
            }
            continue;
        }
        let known = old
            .and_then(|old| old["clusterIPs"].as_array())
            .is_some_and(|before| before.contains(address.value));
        let before = causes.len();
        if !known {
            address.each(ip_errors, causes);
        }
        good &= causes.len() == before;
    }
    if list.len() > 2 {
        causes.push(list.invalid("may only hold up to 2 values"));
    }
    good
}

fn check_together(
    spec: &At<'_, '_>,
    list: &At<'_, '_>,
    families: &At<'_, '_>,
    causes: &mut Vec<Cause>,
) {
    if list.len() > 1 {
        let sixes = list.elements().filter(|one| is_six(one.as_text())).count();
        if list.len() > 2 || sixes != 1 {
            causes.push(list.invalid("may specify no more than one IP for each IP family"));
        }
    }
    if is_headless(spec.value) {
        return;
    }
    for (index, (address, family)) in list.elements().zip(families.elements()).enumerate() {
        let fits = match family.as_text() {
            "IPv4" => !is_six(address.as_text()),
            "IPv6" => is_six(address.as_text()),
            _ => true,
        };
        if !fits {
            let family = family.as_text();
            causes.push(address.invalid(&format!(
                "expected an {family} value as indicated by `ipFamilies[{index}]`"
            )));
        }
    }
}
