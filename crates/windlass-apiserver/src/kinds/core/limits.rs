//! `LimitRange`s and `ResourceQuota`s.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::names;
use crate::quantity::Quantity;
use crate::validation::at::{At, Causes};
use crate::validation::internal;
use crate::validation::resources;
use crate::validation::resources::{Of, quantity};

const TYPES: &[&str] = &["Pod", "Container", "PersistentVolumeClaim"];
const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];

pub(crate) fn limit_range(range: &Value, causes: &mut Causes) {
    let spec = At::root(&range["spec"], "spec");
    let mut seen = BTreeSet::new();
    for limit in spec.items("limits") {
        let kind = limit.text("type");
        let at = limit.child("type");
        let wrong = names::qualified_errors(kind);
        if wrong.is_empty() && !kind.contains('/') && !TYPES.contains(&kind) {
            causes.push(at.invalid("must be a standard limit type or fully qualified"));
        }
        at.complain(wrong, causes);
        if !seen.insert(kind) {
            causes.push(at.duplicate());
        }
        let of = if matches!(kind, "Pod" | "Container") {
            Of::Container
        } else {
            Of::Anything
        };
        let mut keys = BTreeSet::new();
        for list in [
            "max",
            "min",
            "default",
            "defaultRequest",
            "maxLimitRequestRatio",
        ] {
            let of_pod = kind == "Pod" && matches!(list, "default" | "defaultRequest");
            if of_pod {
                if limit.map(list).is_some_and(|map| !map.is_empty()) {
                    let why = "may not be specified when `type` is 'Pod'";
                    causes.push(limit.child(list).forbidden(why));
                }
                continue;
            }
            if list == "maxLimitRequestRatio"
                && kind == "PersistentVolumeClaim"
                && ["min", "max"]
                    .iter()
                    .all(|list| limit.value[*list].get("storage").is_none())
            {
                let why =
                    "either minimum or maximum storage value is required, but neither was provided";
                causes.push(limit.child("limits").required(why));
            }
            for (name, entry) in limit.entries(list) {
                resources::name(&entry, name, of, causes);
                keys.insert(name);
            }
        }
        for key in keys {
            bounds(&limit, key, kind == "Pod", causes);
        }
    }
}

/// The bounds of one resource must leave room for its defaults.
fn bounds(limit: &At<'_, '_>, key: &str, of_pod: bool, causes: &mut Causes) {
    let get = |list: &str| quantity(&limit.value[list][key]);
    let (min, max) = (get("min"), get("max"));
    let default = get("default").filter(|_| !of_pod);
    let request = get("defaultRequest").filter(|_| !of_pod);
    let told = |list: &str, shown: Quantity, why: String| {
        let path = format!("{limit}.{list}[{key}]");
        crate::status::field::invalid(path, &shown.to_string().into(), &why)
    };
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        causes.push(told(
            "min",
            min,
            format!("min value {min} is greater than max value {max}"),
        ));
    }
    if let Some(request) = request {
        if let Some(min) = min.filter(|min| *min > request) {
            let why = format!("min value {min} is greater than default request value {request}");
            causes.push(told("defaultRequest", request, why));
        }
        if let Some(max) = max.filter(|max| request > *max) {
            let why = format!("default request value {request} is greater than max value {max}");
            causes.push(told("defaultRequest", request, why));
        }
        if let Some(default) = default.filter(|default| request > *default) {
            let why = format!(
                "default request value {request} is greater than default limit value {default}"
            );
            causes.push(told("defaultRequest", request, why));
        }
    }
    if let Some(default) = default {
        if let Some(min) = min.filter(|min| *min > default) {
            let why = format!("min value {min} is greater than default value {default}");
            causes.push(told("default", min, why));
        }
        if let Some(max) = max.filter(|max| default > *max) {
            let why = format!("default value {default} is greater than max value {max}");
            causes.push(told("default", max, why));
        }
    }
    let Some(ratio) = get("maxLimitRequestRatio") else {
        return;
    };
    if ratio.milli() < 1000 {
        causes.push(told(
            "maxLimitRequestRatio",
            ratio,
            format!("ratio {ratio} is less than 1"),
        ));
    }
    if let (Some(min), Some(max)) = (min, max) {
        let most = max.ratio_to(&min);
        if ratio.as_f64() > most {
            let why = format!("ratio {ratio} is greater than max/min = {most:.6}");
            causes.push(told("maxLimitRequestRatio", ratio, why));
        }
    }
}

pub(crate) fn quota(quota: &Value, causes: &mut Causes) {
    let spec = At::root(&quota["spec"], "spec");
    amounts(&spec, "hard", causes);
    let hard: Vec<&str> = spec
        .map("hard")
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    let told = spec.child("scopes");
    let mut scopes = BTreeSet::new();
    for scope in spec.items("scopes") {
        let name = scope.value.as_str().unwrap_or_default();
        if !SCOPES.contains(&name) {
            causes.push(told.invalid("unsupported scope"));
        }
        for _ in hard.iter().filter(|resource| !fits(name, resource)) {
            causes.push(told.invalid("unsupported scope applied to resource"));
        }
        scopes.insert(name);
    }
    if contradict(&scopes) {
        causes.push(told.invalid("conflicting scopes"));
    }
    if let Some(selector) = spec.get("scopeSelector") {
        scope_selector(&spec, &selector, &hard, causes);
    }
}

/// Amounts of resources in a quota.
pub(crate) fn amounts(at: &At<'_, '_>, list: &str, causes: &mut Causes) {
    for (name, entry) in at.entries(list) {
        resources::name(&entry, name, Of::Quota, causes);
        resources::amount(&entry, name, causes);
    }
}

fn contradict(scopes: &BTreeSet<&str>) -> bool {
    [
        ["BestEffort", "NotBestEffort"],
        ["Terminating", "NotTerminating"],
    ]
    .iter()
    .any(|pair| pair.iter().all(|scope| scopes.contains(scope)))
}

/// Whether a scope can be applied to a resource.
fn fits(scope: &str, resource: &str) -> bool {
    const COMPUTE: &[&str] = &[
        "pods",
        "cpu",
        "memory",
        "limits.cpu",
        "limits.memory",
        "requests.cpu",
        "requests.memory",
    ];
    if !resources::is_standard_quota(resource) {
        return true;
    }
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        known if SCOPES.contains(&known) => COMPUTE.contains(&resource),
        _ => true,
    }
}

fn scope_selector(spec: &At<'_, '_>, selector: &At<'_, '_>, hard: &[&str], causes: &mut Causes) {
    let told = selector.child("matchExpressions");
    let mut scopes = BTreeSet::new();
    for expression in selector.items("matchExpressions") {
        let (scope, operator) = (expression.text("scopeName"), expression.text("operator"));
        if !SCOPES.contains(&scope) {
            causes.push(
                told.child("scopeName")
                    .invalid_value(scope, "unsupported scope"),
            );
        }
        for _ in hard.iter().filter(|resource| !fits(scope, resource)) {
            let shown = internal::show(selector.value, "core.ScopeSelector");
            causes.push(told.invalid_shown(&shown, "unsupported scope applied to resource"));
        }
        let takes_values = matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if SCOPES.contains(&scope) && !takes_values && operator != "Exists" {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            causes.push(told.child("operator").invalid_value(operator, why));
        }
        let values = expression.list("values");
        match operator {
            "In" | "NotIn" => {
                if values.is_empty() {
                    let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                    causes.push(told.child("values").required(why));
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                    causes.push(told.child("values").invalid_value(values.to_vec(), why));
                }
            }
            _ => {
                let why = "not a valid selector operator";
                causes.push(told.child("operator").invalid_value(operator, why));
            }
        }
        scopes.insert(scope);
    }
    if contradict(&scopes) {
        causes.push(told.invalid_value(spec.value["scopes"].clone(), "conflicting scopes"));
    }
}

/// The scopes of a quota stay.
pub(crate) fn quota_update(new: &Value, old: &Value, causes: &mut Causes) {
    let set = |quota: &Value| -> BTreeSet<String> {
        let scopes = quota["spec"]["scopes"].as_array().into_iter().flatten();
        scopes
            .filter_map(|scope| scope.as_str().map(str::to_owned))
            .collect()
    };
    if set(new) != set(old) {
        let spec = At::root(&new["spec"], "spec");
        causes.push(spec.child("scopes").invalid("field is immutable"));
    }
}
