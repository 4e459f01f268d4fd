//! Services, and what leads to them.

use serde_json::Value;

use super::cell::three;
use super::text::{joined, labels, or, text};

fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn cell(kind: &str, object: &Value, column: &str) -> Value {
    let spec = &object["spec"];
    match (kind, column) {
        ("services", "Type") => text(&spec["type"]),
        ("services", "Cluster-IP") => or(text(&spec["clusterIP"]), "<none>"),
        ("services", "External-IP") => external(object),
        ("services", "Port(s)") => or(ports(spec), "<none>"),
        ("services", _) => or(labels(&spec["selector"]), "<none>"),
        ("endpoints", _) => endpoints(object),
        ("endpointslices", "AddressType") => text(&object["addressType"]),
        ("endpointslices", "Ports") => slice_ports(object),
        ("endpointslices", _) => {
            let all = items(object, "endpoints").iter();
            let all: Vec<String> = all
                .flat_map(|one| items(one, "addresses").iter().map(text))
                .collect();
            or(three(&all), "<unset>")
        }
        ("ingresses", "Class") => or(text(&spec["ingressClassName"]), "<none>"),
        ("ingresses", "Hosts") => hosts(spec),
        ("ingresses", "Address") => balancer(&object["status"]).join(","),
        ("ingresses", _) if items(spec, "tls").is_empty() => "80".to_owned(),
        ("ingresses", _) => "80, 443".to_owned(),
        ("ingressclasses", "Controller") => text(&spec["controller"]),
        ("ingressclasses", _) => parameters(&spec["parameters"]),
        ("servicecidrs", _) => joined(&spec["cidrs"], ","),
        _ => parent(&spec["parentRef"]),
    }
    .into()
}

/// What a load balancer gave.
fn balancer(status: &Value) -> Vec<String> {
    let points = items(&status["loadBalancer"], "ingress").iter();
    points
        .map(|point| or(text(&point["ip"]), &text(&point["hostname"])))
        .filter(|address| !address.is_empty())
        .collect()
}

fn external(service: &Value) -> String {
    let spec = &service["spec"];
    let named = items(spec, "externalIPs").iter().map(text);
    match spec["type"].as_str() {
        Some("ExternalName") => text(&spec["externalName"]),
        Some("LoadBalancer") => {
            let mut all = balancer(&service["status"]);
            all.extend(named);
            or(all.join(","), "<pending>")
        }
        _ => or(named.collect::<Vec<_>>().join(","), "<none>"),
    }
}

fn ports(spec: &Value) -> String {
    let ports = items(spec, "ports").iter();
    ports
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match port["nodePort"].as_i64() {
                Some(node_port) => format!("{}:{node_port}/{protocol}", port["port"]),
                None => format!("{}/{protocol}", port["port"]),
            }
        })
        .collect::<Vec<_>>()
        .join(",")
}

fn endpoints(endpoints: &Value) -> String {
    let subsets = items(endpoints, "subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = items(subset, "addresses")
            .iter()
            .map(|one| text(&one["ip"]));
        let addresses: Vec<String> = addresses.collect();
        let ports = items(subset, "ports");
        if ports.is_empty() {
            all.extend(addresses);
            continue;
        }
        for port in ports {
            let of_port = addresses.iter().map(|ip| {
                if ip.contains(':') {
                    format!("[{ip}]:{}", port["port"])
                } else {
                    format!("{ip}:{}", port["port"])
                }
            });
            all.extend(of_port);
        }
    }
    three(&all)
}

fn slice_ports(slice: &Value) -> String {
    let ports = items(slice, "ports")
        .iter()
        .map(|port| match &port["port"] {
            Value::Null => or(text(&port["name"]), "*"),
            number => number.to_string(),
        });
    let ports: Vec<String> = ports.collect();
    or(three(&ports), "<unset>")
}

fn hosts(spec: &Value) -> String {
    let hosts = items(spec, "rules").iter().map(|rule| text(&rule["host"]));
    let hosts: Vec<String> = hosts.filter(|host| !host.is_empty()).collect();
    or(three(&hosts), "*")
}

fn parameters(parameters: &Value) -> String {
    if parameters.is_null() {
        return "<none>".to_owned();
    }
    let (kind, name) = (text(&parameters["kind"]), text(&parameters["name"]));
    match text(&parameters["apiGroup"]).as_str() {
        "" => format!("{kind}/{name}"),
        group => format!("{kind}.{group}/{name}"),
    }
}

fn parent(parent: &Value) -> String {
    if parent.is_null() {
        return "<none>".to_owned();
    }
    let resource = match text(&parent["group"]).as_str() {
        "" => text(&parent["resource"]),
        group => format!("{}.{group}", text(&parent["resource"])),
    };
    match text(&parent["namespace"]).as_str() {
        "" => format!("{resource}/{}", text(&parent["name"])),
        namespace => format!("{resource}/{namespace}/{}", text(&parent["name"])),
    }
}
