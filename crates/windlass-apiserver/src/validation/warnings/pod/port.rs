//! Warnings about ports that containers of one pod both have.

use super::CONTAINERS;
use crate::validation::at::At;

struct Known<'v> {
    path: String,
    key: (i64, &'v str),
    host_ip: &'v str,
    host_port: i64,
}

pub(super) fn check(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let mut known: Vec<Known<'_>> = Vec::new();
    for list in CONTAINERS {
        for container in spec.items(list) {
            for port in container.items("ports") {
                numbers(&port, &mut known, warnings);
            }
        }
    }
    let mut names: Vec<(&str, String)> = Vec::new();
    for list in CONTAINERS {
        for container in spec.items(list) {
            for port in container.items("ports") {
                let name = port.text("name");
                match names.iter().find(|(known, _)| *known == name) {
                    _ if name.is_empty() => {}
                    Some((_, other)) => warnings.push(format!(
                        "{port}: duplicate port name \"{name}\" with {other}, services and probes that select ports by name will use {other}"
                    )),
                    None => names.push((name, port.to_string())),
                }
            }
        }
    }
}

fn numbers<'v>(port: &At<'_, 'v>, known: &mut Vec<Known<'v>>, warnings: &mut Vec<String>) {
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
    for other in known.iter().filter(|other| other.key == key) {
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
        key,
        host_ip,
        host_port,
    });
}
