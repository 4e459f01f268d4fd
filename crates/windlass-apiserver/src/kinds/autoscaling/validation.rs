//! `HorizontalPodAutoscaler`s, in the form of version 2.

use serde_json::Value;

use crate::names;
use crate::quantity::Quantity;
use crate::validation::at::{At, Causes};
use crate::validation::resources;
use crate::validation::resources::Of;

const MAX_PERIOD: i64 = 1800;
const MAX_WINDOW: i64 = 3600;
const TYPES: &[&str] = &[
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];
/// Sources of metrics in the order they are looked at, and the type that names each.
const SOURCES: &[(&str, &str)] = &[
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

pub(crate) fn check(autoscaler: &Value, causes: &mut Causes) {
    let spec = At::root(&autoscaler["spec"], "spec");
    let (min, max) = (spec.child("minReplicas"), spec.child("maxReplicas"));
    let most = max.value.as_i64().unwrap_or_default();
    if min.value.as_i64().is_some_and(|min| min < 1) {
        causes.push(min.invalid("must be greater than or equal to 1"));
    }
    if most == 0 {
        causes.push(max.required("must be set and greater than 0"));
    } else if most < 0 {
        causes.push(max.invalid("must be greater than or equal to 1"));
    }
    if min.value.as_i64().is_some_and(|min| most < min) {
        let why = "must be greater than or equal to `minReplicas`";
        causes.push(max.invalid_value(most, why));
    }
    reference(&spec.child("scaleTargetRef"), true, causes);
    let mut beyond_the_pods = false;
    for metric in spec.items("metrics") {
        check_metric(&metric, causes);
        beyond_the_pods |= matches!(metric.text("type"), "Object" | "External");
    }
    if min.value == 0 && !beyond_the_pods {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.push(spec.child("metrics").forbidden(why));
    }
    let behavior = spec.child("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        if let Some(rules) = behavior.get(direction) {
            check_rules(&rules, causes);
        }
    }
}

fn reference(at: &At<'_, '_>, grouped: bool, causes: &mut Causes) {
    for field in ["kind", "name"] {
        match at.text(field) {
            "" => causes.push(at.child(field).required("")),
            text => at
                .child(field)
                .complain(names::segment_errors(text), causes),
        }
    }
    let version = at.text("apiVersion");
    let told = at.child("apiVersion");
    if version.matches('/').count() > 1 {
        let why = format!("unexpected GroupVersion string: {version}");
        causes.push(told.invalid(&why));
    } else if grouped && (!version.contains('/') || version.starts_with('/')) {
        causes.push(told.invalid_value(version, "apiVersion must specify API group"));
    }
}

fn check_metric(at: &At<'_, '_>, causes: &mut Causes) {
    let kind = at.text("type");
    if kind.is_empty() {
        causes.push(
            at.child("type")
                .required("must specify a metric source type"),
        );
    }
    if !TYPES.contains(&kind) {
        causes.push(at.child("type").not_supported(TYPES));
    }
    let mut given = SOURCES
        .iter()
        .filter_map(|(field, _)| at.get(field).map(|source| (*field, source)));
    if let Some((field, source)) = given.next() {
        check_source(field, &source, causes);
    }
    let expected = SOURCES
        .iter()
        .find(|(_, known)| *known == kind)
        .map(|(field, _)| *field);
    match expected {
        Some(field) if !at.has(field) => {
            let why = "must populate information for the given metric source";
            causes.push(at.child(field).required(why));
        }
        Some(_) => {}
        None => causes.push(at.child("type").not_supported(TYPES)),
    }
    let count = SOURCES.iter().filter(|(field, _)| at.has(field)).count();
    for (field, _) in SOURCES
        .iter()
        .filter(|(field, _)| count > 1 && at.has(field))
    {
        if Some(*field) != expected {
            let why = "must populate the given metric source only";
            causes.push(at.child(field).forbidden(why));
        }
    }
}

fn check_source(kind: &str, at: &At<'_, '_>, causes: &mut Causes) {
    let target = at.child("target");
    match kind {
        "object" => {
            reference(&at.child("describedObject"), false, causes);
            metric(&at.child("metric"), causes);
        }
        "external" | "pods" => metric(&at.child("metric"), causes),
        _ => {
            match at.text("name") {
                "" => causes.push(at.child("name").required("must specify a resource name")),
                name if kind == "containerResource" => {
                    resources::name(&at.child("name"), name, Of::Container, causes);
                }
                _ => {}
            }
            if kind == "containerResource" {
                match at.text("container") {
                    "" => causes.push(at.child("container").required("must specify a container")),
                    name => at
                        .child("container")
                        .complain(names::label_errors(name), causes),
                }
            }
        }
    }
    check_target(&target, causes);
    let (value, average, share) = (
        target.has("value"),
        target.has("averageValue"),
        target.has("averageUtilization"),
    );
    let mut required = |field: &str, why: &str| causes.push(target.child(field).required(why));
    match kind {
        "object" if !value && !average => {
            required(
                "averageValue",
                "must set either a target value or averageValue",
            );
        }
        "external" if !value && !average => required(
            "averageValue",
            "must set either a target value for metric or a per-pod target",
        ),
        "external" if value && average => causes.push(
            target
                .child("value")
                .forbidden("may not set both a target value for metric and a per-pod target"),
        ),
        "pods" if !average => {
            required(
                "averageValue",
                "must specify a positive target averageValue",
            );
        }
        "resource" | "containerResource" if !share && !average => required(
            "averageUtilization",
            "must set either a target raw value or a target utilization",
        ),
        "resource" | "containerResource" if share && average => {
            causes.push(
                target
                    .child("averageValue")
                    .forbidden("may not set both a target raw value and a target utilization"),
            );
        }
        _ => {}
    }
}

fn metric(at: &At<'_, '_>, causes: &mut Causes) {
    match at.text("name") {
        "" => causes.push(at.child("name").required("must specify a metric name")),
        name => at
            .child("name")
            .complain(names::segment_errors(name), causes),
    }
}

fn check_target(at: &At<'_, '_>, causes: &mut Causes) {
    let kind = at.text("type");
    if kind.is_empty() {
        causes.push(
            at.child("type")
                .required("must specify a metric target type"),
        );
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let why = "must be either Utilization, Value, or AverageValue";
        causes.push(at.child("type").invalid_value(kind, why));
    }
    for field in ["value", "averageValue"] {
        let amount = at.child(field);
        let quantity = amount.value.as_str().and_then(Quantity::parse);
        if quantity.is_some_and(|quantity| quantity.is_zero() || quantity.is_negative()) {
            causes.push(amount.invalid("must be positive"));
        }
    }
    let share = at.child("averageUtilization");
    if share.value.as_i64().is_some_and(|share| share < 1) {
        causes.push(share.invalid("must be greater than 0"));
    }
}

fn check_rules(at: &At<'_, '_>, causes: &mut Causes) {
    let window = at.child("stabilizationWindowSeconds");
    if window.value.as_i64().is_some_and(|seconds| seconds < 0) {
        causes.push(window.invalid("must be greater than or equal to zero"));
    }
    if window
        .value
        .as_i64()
        .is_some_and(|seconds| seconds > MAX_WINDOW)
    {
        causes.push(window.invalid(&format!("must be less than or equal to {MAX_WINDOW}")));
    }
    at.child("selectPolicy")
        .one_of_if_set(&["Disabled", "Max", "Min"], causes);
    if at.list("policies").is_empty() {
        causes.push(
            at.child("policies")
                .required("must specify at least one Policy"),
        );
    }
    for policy in at.items("policies") {
        if !matches!(policy.text("type"), "Pods" | "Percent") {
            causes.push(policy.child("type").not_supported(&["Percent", "Pods"]));
        }
        for field in ["value", "periodSeconds"] {
            if policy.int(field).unwrap_or_default() <= 0 {
                let number = policy.int(field).unwrap_or_default();
                causes.push(
                    policy
                        .child(field)
                        .invalid_value(number, "must be greater than zero"),
                );
            }
        }
        let period = policy.child("periodSeconds");
        if period
            .value
            .as_i64()
            .is_some_and(|seconds| seconds > MAX_PERIOD)
        {
            causes.push(period.invalid(&format!("must be less than or equal to {MAX_PERIOD}")));
        }
    }
}
