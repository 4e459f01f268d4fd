//! The families of a Service's addresses. This cluster has one, IPv4.

use serde_json::{Value, json};

use super::text;
use crate::kinds::core::service::validation::check_addresses;
use crate::status::{Cause, field};

const CONFIGURED: &str = "IPv4";

fn list<'a>(spec: &'a Value, name: &str) -> &'a [Value] {
    spec[name].as_array().map_or(&[], Vec::as_slice)
}

fn policy(spec: &Value) -> &str {
    text(spec, "ipFamilyPolicy")
}

/// Fills in `ipFamilyPolicy` and `ipFamilies`; what comes back is why that cannot be.
pub(super) fn fill(spec: &mut Value, old: Option<&Value>) -> Vec<Cause> {
    if text(spec, "type") == "ExternalName" || old.is_some_and(|old| stays_preferred(spec, old)) {
        return Vec::new();
    }
    let unselected = text(spec, "clusterIP") == "None"
        && spec["selector"]
            .as_object()
            .is_none_or(serde_json::Map::is_empty);
    if spec["ipFamilyPolicy"].is_null() {
        let before = old.map(policy).filter(|policy| !policy.is_empty());
        let chosen = before.unwrap_or(if unselected {
            "RequireDualStack"
        } else {
            "SingleStack"
        });
        spec["ipFamilyPolicy"] = chosen.into();
    }
    let causes = check_addresses(spec, old);
    if !causes.is_empty() {
        return causes;
    }
    let causes = infer(spec, old);
    if !causes.is_empty() {
        return causes;
    }
    if unselected {
        fill_unselected(spec);
        return Vec::new();
    }
    let causes = check_configured(spec);
    if causes.is_empty() && list(spec, "ipFamilies").is_empty() {
        spec["ipFamilies"] = json!([CONFIGURED]);
    }
    causes
}

/// A Service that prefers two families and changes nothing about it keeps what it has.
fn stays_preferred(spec: &Value, old: &Value) -> bool {
    let same = |name: &str| spec[name] == old[name];
    policy(spec) == "PreferDualStack"
        && policy(old) == "PreferDualStack"
        && same("type")
        && same("clusterIP")
        && same("clusterIPs")
        && same("ipFamilies")
}

/// Takes the families from the addresses, and checks that the policy goes with both.
fn infer(spec: &mut Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let single = policy(spec) == "SingleStack";
    let wrong_policy = |spec: &Value, why: &str| {
        field::invalid("spec.ipFamilyPolicy", &spec["ipFamilyPolicy"], why)
    };
    if let Some(old) = old {
        for (name, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
            let (now, before) = (list(spec, name), list(old, name));
            if single && now == before && now.len() > 1 {
                spec[name] = json!([before[0]]);
            } else if !single && now.len() == 1 && before.len() == 2 {
                let why = format!("must be 'SingleStack' to release the secondary {what}");
                causes.push(wrong_policy(spec, &why));
            }
        }
    }
    if single {
        for (name, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
            if list(spec, name).len() == 2 {
                let why = format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                );
                causes.push(wrong_policy(spec, &why));
            }
        }
    }
    let addresses = list(spec, "clusterIPs").to_vec();
    for (index, address) in addresses.iter().enumerate() {
        if address == "None" {
            break;
        }
        if index < list(spec, "ipFamilies").len() {
            continue;
        }
        if address
            .as_str()
            .is_some_and(|address| address.contains(':'))
        {
            causes.push(field::invalid(
                format!("spec.clusterIPs[{index}]"),
                &spec["clusterIPs"],
                "IPv6 is not configured on this cluster",
            ));
        } else {
            push_family(spec, CONFIGURED);
        }
    }
    causes
}

fn push_family(spec: &mut Value, family: &str) {
    if !spec["ipFamilies"].is_array() {
        spec["ipFamilies"] = json!([]);
    }
    if let Some(families) = spec["ipFamilies"].as_array_mut() {
        families.push(family.into());
    }
}

/// Nobody knows what endpoints a Service without addresses and without a selector will get.
fn fill_unselected(spec: &mut Value) {
    if list(spec, "ipFamilies").is_empty() {
        push_family(spec, CONFIGURED);
    }
    if list(spec, "ipFamilies").len() < 2 && policy(spec) != "SingleStack" {
        let first_is_four = spec["ipFamilies"][0] == "IPv4";
        push_family(spec, if first_is_four { "IPv6" } else { "IPv4" });
    }
}

fn check_configured(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if policy(spec) == "RequireDualStack" {
        causes.push(field::invalid(
            "spec.ipFamilyPolicy",
            &spec["ipFamilyPolicy"],
            "this cluster is not configured for dual-stack services",
        ));
    }
    for (index, family) in list(spec, "ipFamilies").iter().enumerate() {
        if family != CONFIGURED {
            causes.push(field::invalid(
                format!("spec.ipFamilies[{index}]"),
                family,
                "not configured on this cluster",
            ));
        }
    }
    causes
}
