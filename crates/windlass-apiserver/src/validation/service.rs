//! Services.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::status::{Cause, field};

/// What is wrong with a Service's spec.
pub(super) fn check(spec: &Value, causes: &mut Vec<Cause>) {
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let headless = spec["clusterIP"] == "None";
    if ports.is_empty() && !headless && spec["type"] != "ExternalName" {
        causes.push(field::required("spec.ports", ""));
    }
    if spec["type"] == "ExternalName" && spec["externalName"].as_str().is_none_or(str::is_empty) {
        causes.push(field::required("spec.externalName", ""));
    }
    let mut names = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            if ports.len() > 1 {
                causes.push(field::required(format!("{path}.name"), ""));
            }
        } else if !names.insert(name) {
            causes.push(field::duplicate(format!("{path}.name"), &name.into()));
        }
        let number = port["port"].as_i64().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            causes.push(field::invalid(
                format!("{path}.port"),
                &number.into(),
                "must be between 1 and 65535, inclusive",
            ));
        }
        let protocol = port["protocol"].as_str().unwrap_or_default();
        if !numbers.insert((number, protocol)) {
            let shown = serde_json::json!({"port": number, "protocol": protocol});
            causes.push(field::duplicate(path, &shown));
        }
    }
}
