//! Pods, alone or as a template.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::names;
use crate::quantity::Quantity;
use crate::status::{Cause, field};

/// What is wrong with a pod's spec at `path`.
pub(super) fn check(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let list = |name: &str| spec[name].as_array().map_or(&[][..], Vec::as_slice);
    let mut volumes = BTreeSet::new();
    for (index, volume) in list("volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{index}].name");
        check_name(volume, &path, &mut volumes, causes);
    }
    if list("containers").is_empty() {
        causes.push(field::required(format!("{path}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for kind in ["containers", "initContainers"] {
        for (index, container) in list(kind).iter().enumerate() {
            let path = format!("{path}.{kind}[{index}]");
            check_name(container, &format!("{path}.name"), &mut names, causes);
            check_container(container, &path, &volumes, causes);
        }
    }
}

fn check_name<'a>(
    named: &'a Value,
    path: &str,
    known: &mut BTreeSet<&'a str>,
    causes: &mut Vec<Cause>,
) {
    let name = named["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(field::required(path, ""));
        return;
    }
    for why in names::label_errors(name) {
        causes.push(field::invalid(path, &name.into(), &why));
    }
    if !known.insert(name) {
        causes.push(field::duplicate(path, &name.into()));
    }
}

fn check_container(
    container: &Value,
    path: &str,
    volumes: &BTreeSet<&str>,
    causes: &mut Vec<Cause>,
) {
    let image = container["image"].as_str().unwrap_or_default();
    if image.is_empty() {
        causes.push(field::required(format!("{path}.image"), ""));
    } else if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        causes.push(field::invalid(format!("{path}.image"), &image.into(), why));
    }
    let ports = container["ports"].as_array().into_iter().flatten();
    for (index, port) in ports.enumerate() {
        let path = format!("{path}.ports[{index}].containerPort");
        match port["containerPort"].as_i64().unwrap_or_default() {
            0 => causes.push(field::required(path, "")),
            1..=65535 => {}
            number => {
                let why = "must be between 1 and 65535, inclusive";
                causes.push(field::invalid(path, &number.into(), why));
            }
        }
    }
    check_mounts(container, path, volumes, causes);
    check_resources(&container["resources"], path, causes);
}

fn check_mounts(container: &Value, path: &str, volumes: &BTreeSet<&str>, causes: &mut Vec<Cause>) {
    let mut places = BTreeSet::new();
    let mounts = container["volumeMounts"].as_array().into_iter().flatten();
    for (index, mount) in mounts.enumerate() {
        let path = format!("{path}.volumeMounts[{index}]");
        let name = mount["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(field::required(format!("{path}.name"), ""));
        } else if !volumes.contains(name) {
            causes.push(field::not_found(format!("{path}.name"), &name.into()));
        }
        let place = mount["mountPath"].as_str().unwrap_or_default();
        if place.is_empty() {
            causes.push(field::required(format!("{path}.mountPath"), ""));
        } else if !places.insert(place) {
            let why = "must be unique";
            causes.push(field::invalid(
                format!("{path}.mountPath"),
                &place.into(),
                why,
            ));
        }
    }
}

/// Nobody may ask for more than the limit.
fn check_resources(resources: &Value, path: &str, causes: &mut Vec<Cause>) {
    let requests = resources["requests"].as_object().into_iter().flatten();
    for (resource, request) in requests {
        let amount = |value: &Value| value.as_str().and_then(Quantity::parse);
        let limit = &resources["limits"][resource.as_str()];
        if let (Some(asked), Some(most)) = (amount(request), amount(limit))
            && asked > most
        {
            causes.push(field::invalid(
                format!("{path}.resources.requests"),
                request,
                &format!("must be less than or equal to {resource} limit of {most}"),
            ));
        }
    }
}
