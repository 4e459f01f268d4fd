//! The kinds of `resource.k8s.io`, but for what their expressions mean.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::equality::means_the_same;
use crate::names;
use crate::status::{Cause, field};
use crate::validation::at::{At, IMMUTABLE, immutable};

const NODE_CHOICES: &[&str] = &[
    "nodeName",
    "nodeSelector",
    "allNodes",
    "perDeviceNodeSelection",
];

pub(crate) fn check_class(class: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(class, "").then("spec");
    check_selectors(&spec.child("selectors"), causes);
    for config in spec.child("config").elements() {
        check_config(&config, causes);
    }
    let name = spec.child("extendedResourceName");
    if name.is_set() && !is_extended_resource(name.as_text()) {
        causes.push(name.invalid("must be a valid extended resource name"));
    }
}

/// Whether a name is that of a resource which Kubernetes does not know, and a quota can name.
fn is_extended_resource(name: &str) -> bool {
    name.contains('/')
        && !name.contains("kubernetes.io/")
        && !name.starts_with("requests.")
        && names::qualified_errors(&format!("requests.{name}")).is_empty()
}

fn check_selectors(selectors: &At<'_, '_>, causes: &mut Vec<Cause>) {
    for selector in selectors.elements() {
        let cel = selector.child("cel");
        if !cel.is_set() {
            causes.push(cel.required(""));
        }
    }
}

fn check_config(config: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let opaque = config.child("opaque");
    if !opaque.is_set() {
        causes.push(opaque.required(""));
        return;
    }
    opaque.child("driver").name(names::subdomain_errors, causes);
    let parameters = opaque.child("parameters");
    if !parameters.is_set() {
        causes.push(parameters.required(""));
    }
}

pub(crate) fn check_claim(claim: &Value, causes: &mut Vec<Cause>) {
    check_devices(&At::root(claim, "").then("spec").then("devices"), causes);
}

pub(crate) fn check_template(template: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(template, "").then("spec");
    let metadata = spec.child("metadata");
    let annotations = metadata.child("annotations");
    for key in annotations.keys() {
        for why in names::qualified_errors(&key.to_lowercase()) {
            causes.push(field::invalid(annotations.path(), &key.into(), &why));
        }
    }
    let labels = metadata.child("labels");
    for key in labels.keys() {
        for why in names::qualified_errors(key) {
            causes.push(field::invalid(labels.path(), &key.into(), &why));
        }
        let value = labels.key(key);
        for why in names::label_value_errors(value.as_text()) {
            causes.push(field::invalid(labels.path(), value.value, &why));
        }
    }
    check_devices(&spec.child("spec").then("devices"), causes);
}

fn check_devices(devices: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let mut known = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for request in devices.child("requests").elements() {
        let name = request.child("name");
        name.each(names::label_errors, causes);
        let (exact, first) = (request.child("exactly"), request.child("firstAvailable"));
        match (exact.is_set(), first.len() > 0) {
            (true, false) => check_request(&exact, causes),
            (false, true) => {
                for choice in first.elements() {
                    choice.child("name").each(names::label_errors, causes);
                    check_request(&choice, causes);
                    known.insert(format!("{}/{}", name.as_text(), choice.child("name").as_text()));
                }
            }
            (false, false) => causes.push(request.required(
                "exactly one of `exactly` or `firstAvailable` is required",
            )),
            (true, true) => causes.push(field::invalid(request.path(), &Value::Null,
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
            )),
        }
        known.insert(name.as_text().to_owned());
        if !seen.insert(name.as_text()) {
            causes.push(field::duplicate(request.path(), &name.as_text().into()));
        }
    }
    for constraint in devices.child("constraints").elements() {
        check_names(&constraint.child("requests"), &known, causes);
        let (same, distinct) = (
            constraint.child("matchAttribute"),
            constraint.child("distinctAttribute"),
        );
        if same.is_set() == distinct.is_set() {
            causes.push(constraint.required(
                "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set",
            ));
        }
    }
    for config in devices.child("config").elements() {
        check_names(&config.child("requests"), &known, causes);
        check_config(&config, causes);
    }
}

fn check_names(requests: &At<'_, '_>, known: &BTreeSet<String>, causes: &mut Vec<Cause>) {
    for name in requests
        .elements()
        .filter(|name| !known.contains(name.as_text()))
    {
        causes.push(name.invalid(
            "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'",
        ));
    }
}

fn check_request(request: &At<'_, '_>, causes: &mut Vec<Cause>) {
    request
        .child("deviceClassName")
        .name(names::subdomain_errors, causes);
    check_selectors(&request.child("selectors"), causes);
    let (mode, count) = (request.child("allocationMode"), request.child("count"));
    match mode.as_text() {
        "All" => {
            if !count.is_zero() {
                let why = "must not be specified when allocationMode is 'All'";
                causes.push(count.invalid(why));
            }
        }
        "ExactCount" | "" => {
            if count.as_int() <= 0 && count.is_set() {
                causes.push(count.invalid("must be greater than zero"));
            }
        }
        _ => causes.push(mode.not_supported(&["All", "ExactCount"])),
    }
    for toleration in request.child("tolerations").elements() {
        check_toleration(&toleration, causes);
    }
}

fn check_toleration(toleration: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let (key, value) = (toleration.child("key"), toleration.child("value"));
    if !key.as_text().is_empty() {
        key.each(names::qualified_errors, causes);
    }
    let operator = toleration.child("operator");
    match operator.as_text() {
        "Exists" if value.as_text().is_empty() => {}
        "Exists" => causes.push(value.invalid("must be empty for operator `Exists`")),
        "Equal" => value.each(names::label_value_errors, causes),
        "" => causes.push(operator.required("")),
        _ => causes.push(operator.not_supported(&["Equal", "Exists"])),
    }
    let effect = toleration.child("effect");
    if !effect.as_text().is_empty() {
        effect.one_of(&["NoExecute", "NoSchedule", "None"], causes);
    }
}

/// A claim says once what it wants.
pub(crate) fn check_spec_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if !means_the_same(&new["spec"], &old["spec"]) {
        causes.push(field::invalid_shown(
            "spec",
            &shown(&new["spec"]),
            IMMUTABLE,
        ));
    }
}

/// As the Go struct shows it, as far down as names of fields go.
fn shown(spec: &Value) -> String {
    if spec["spec"].is_object() {
        return format!("{{\"Spec\":{}}}", shown(&spec["spec"]));
    }
    let devices = &spec["devices"];
    format!(
        "{{\"Devices\":{{\"Requests\":{},\"Constraints\":{},\"Config\":{}}}}}",
        devices["requests"], devices["constraints"], devices["config"]
    )
}

pub(crate) fn check_slice(slice: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(slice, "").then("spec");
    spec.child("driver").name(names::subdomain_errors, causes);
    let pool = spec.child("pool");
    let name = pool.child("name");
    if name.as_text().is_empty() {
        causes.push(name.required(""));
    } else {
        for part in name.as_text().split('/') {
            for why in names::subdomain_errors(part) {
                causes.push(name.invalid(&why));
            }
        }
    }
    let count = pool.child("resourceSliceCount");
    if count.as_int() <= 0 {
        causes.push(count.invalid_int("must be greater than zero"));
    }
    let generation = pool.child("generation");
    if generation.as_int() < 0 {
        causes.push(generation.invalid("must be greater than or equal to zero"));
    }
    let chosen = NODE_CHOICES
        .iter()
        .filter(|part| !spec.child(part).is_zero());
    match chosen.count() {
        0 => causes.push(spec.required(
            "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
        )),
        1 => {}
        _ => causes.push(field::invalid_shown(
            "spec",
            "\"{nodeName, nodeSelector, allNodes}\"",
            "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set",
        )),
    }
    let mut seen = BTreeSet::new();
    for device in spec.child("devices").elements() {
        let name = device.child("name");
        name.each(names::label_errors, causes);
        check_attributes(&device.child("attributes"), causes);
        if !seen.insert(name.as_text()) {
            causes.push(field::duplicate(device.path(), &name.as_text().into()));
        }
    }
}

/// An attribute has one value.
fn check_attributes(attributes: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let why = "exactly one value must be specified";
    for key in attributes.keys() {
        let attribute = attributes.key(key);
        let value = |name: &str| attribute.child(name).value.clone();
        match attribute.len() {
            0 => causes.push(field::invalid(attribute.path(), &"".into(), why)),
            1 => {}
            _ => {
                let parts = [
                    ("IntValue", "int"),
                    ("BoolValue", "bool"),
                    ("StringValue", "string"),
                    ("VersionValue", "version"),
                    ("IntValues", "ints"),
                    ("BoolValues", "bools"),
                    ("StringValues", "strings"),
                    ("VersionValues", "versions"),
                ];
                let parts = parts.map(|(shown, name)| format!("\"{shown}\":{}", value(name)));
                let shown = format!("{{{}}}", parts.join(","));
                causes.push(field::invalid_shown(attribute.path(), &shown, why));
            }
        }
    }
}

pub(crate) fn check_slice_update(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let (spec, before) = (
        At::root(new, "").then("spec"),
        At::root(old, "").then("spec"),
    );
    for part in ["driver", "nodeName"] {
        immutable(&spec.child(part), &before.child(part), causes);
    }
    let name = |spec: &At<'_, '_>| spec.child("pool").then("name").value.clone();
    if name(&spec) != name(&before) {
        let pool = spec.child("pool").then("name");
        causes.push(pool.invalid(IMMUTABLE));
    }
}
