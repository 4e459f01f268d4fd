//! Warnings about ports that containers of one pod both have.

use std::collections::BTreeMap;

use super::CONTAINERS;
use crate::steps::step;
use crate::validation::at::At;

/// How often two ports of one pod are looked at beside each other.
const MOST_LOOKS: usize = 10_000;

struct Known<'v> {
    path: String,
    host_ip: &'v str,
    host_port: i64,
}

pub(super) fn check(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let mut known: BTreeMap<(i64, &str), Vec<Known<'_>>> = BTreeMap::new();
    let mut looks = MOST_LOOKS;
    for list in CONTAINERS {
        for container in spec.items(list) {
            for port in container.items("ports") {
                numbers(&port, &mut known, &mut looks, warnings);
            }
        }
    }
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for list in CONTAINERS {
        for container in spec.items(list) {
            for port in container.items("ports") {
                let name = port.text("name");
                match names.get(name) {
                    _ if name.is_empty() => {}
                    Some(other) => warnings.push(format!(
                        "{port}: duplicate port name \"{name}\" with {other}, services and probes that select ports by name will use {other}"
                    )),
                    None => {
                        names.insert(name, port.to_string());
                    }
                }
            }
        }
    }
}

fn numbers<'v>(
    port: &At<'_, 'v>,
    known: &mut BTreeMap<(i64, &'v str), Vec<Known<'v>>>,
    looks: &mut usize,
    warnings: &mut Vec<String>,
) {
    let number = |field: &str| port.int(field).unwrap_or_default();
    let (host_ip, host_port) = (port.text("hostIP"), number("hostPort"));
    let key = (number("containerPort"), port.text("protocol"));
    if !host_ip.is_empty() && host_port == 0 {
        warnings.push(format!(
            "{port}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{host_ip}}}",
            port.text("name"),
            key.0,
            key.1
        ));
    }
    let known = known.entry(key).or_default();
    for other in known.iter() {
        // Each is looked at beside each: no more than these fit the warnings.
        let Some(left) = looks.checked_sub(1) else {
            return;
        };
        *looks = left;
        step();
        let how = if host_ip == other.host_ip && host_port == other.host_port {
            "duplicate"
        } else if host_port == 0 || other.host_port == 0 {
            "overlapping"
        } else if host_port == other.host_port && host_ip.is_empty() != other.host_ip.is_empty() {
            "dangerously ambiguous"
        } else {
            continue;
        };
        warnings.push(format!("{port}: {how} port definition with {}", other.path));
    }
    known.push(Known {
        path: port.to_string(),
        host_ip,
        host_port,
    });
}
