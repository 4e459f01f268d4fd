//! What a change of a Service may not change.

use serde_json::Value;

use crate::kinds::core::service::allocation::{has_address, has_health_check, is_headless};
use crate::names;
use crate::status::{Cause, field};
use crate::validation::at::At;

const ONCE: &str = "may not change once set";

/// Everything that `new` changes and may not. Comes before what is wrong with `new` by itself.
pub(crate) fn check(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let (spec, before) = (
        At::root(&new["spec"], "spec"),
        At::root(&old["spec"], "spec"),
    );
    if has_address(spec.value) && has_address(before.value) {
        check_addresses(&spec, &before, causes);
        check_families(&spec, &before, causes);
    }
    let balanced = |spec: &At<'_, '_>| spec.child("type").as_text() == "LoadBalancer";
    let class = spec.child("loadBalancerClass");
    if balanced(&spec) {
        if balanced(&before) && class.value != before.child("loadBalancerClass").value {
            causes.push(class.invalid(ONCE));
        }
        if class.is_set() {
            class.each(names::qualified_errors, causes);
        }
    } else if class.is_set() {
        causes.push(class.forbidden("may only be used when `type` is 'LoadBalancer'"));
    }
    let check = spec.child("healthCheckNodePort");
    if has_health_check(before.value)
        && has_health_check(spec.value)
        && check.value != before.child("healthCheckNodePort").value
    {
        causes.push(check.forbidden("field is immutable"));
    }
}

fn check_addresses(spec: &At<'_, '_>, before: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if is_headless(spec.value) && is_headless(before.value) {
        return;
    }
    let (now, then) = (spec.child("clusterIPs"), before.child("clusterIPs"));
    let refuse = |index: usize, why: &str| {
        field::invalid(format!("spec.clusterIPs[{index}]"), now.value, why)
    };
    if now.len() == then.len() {
        for (index, (now, then)) in now.elements().zip(then.elements()).enumerate() {
            if now.value != then.value {
                causes.push(refuse(index, ONCE));
            }
        }
    } else if now.len() == 0 {
        causes.push(refuse(0, "primary clusterIP can not be unset"));
    } else if then.len() > 0 && now.value[0] != then.value[0] {
        causes.push(refuse(0, ONCE));
    }
}

fn check_families(spec: &At<'_, '_>, before: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if is_headless(spec.value) || is_headless(before.value) {
        return;
    }
    let (now, then) = (spec.child("ipFamilies"), before.child("ipFamilies"));
    let changed = match (now.value.as_array(), then.value.as_array()) {
        (Some(now), Some(then)) => now.iter().zip(then).any(|(now, then)| now != then),
        _ => false,
    };
    if changed {
        causes.push(field::invalid("spec.ipFamilies[0]", now.value, ONCE));
    }
}
