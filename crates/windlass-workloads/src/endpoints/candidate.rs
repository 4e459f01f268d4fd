//! Which pods stand behind a Service, at which addresses and ports.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Container, ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::pod;

/// What the Service's pods are selected by; none when its endpoints are somebody else's business.
pub(super) fn selector(service: &Service) -> Option<BTreeMap<String, String>> {
    let spec = service.spec.as_ref()?;
    if spec.type_.as_deref() == Some("ExternalName") {
        return None;
    }
    spec.selector
        .clone()
        .filter(|selector| !selector.is_empty())
}

/// Whether a pod can be an endpoint at all: it has an address and has not ended.
pub(super) fn belongs(pod: &Pod, with_terminating: bool) -> bool {
    let has_address = pod.status.as_ref().is_some_and(|status| {
        status.pod_ip.as_deref().is_some_and(|ip| !ip.is_empty())
            || status.pod_ips.as_ref().is_some_and(|ips| !ips.is_empty())
    });
    has_address && !pod::has_ended(pod) && (with_terminating || !pod::is_terminating(pod))
}

/// Whether pods count although they are not ready.
pub(super) fn publishes_unready(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.and_then(|spec| spec.publish_not_ready_addresses) == Some(true)
}

/// Whether the Service has no address of its own.
pub(super) fn is_headless(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    let address = spec.and_then(|spec| spec.cluster_ip.as_deref());
    matches!(address.unwrap_or_default(), "" | "None")
}

/// The Service's ports.
pub(super) fn service_ports(service: &Service) -> &[ServicePort] {
    let spec = service.spec.as_ref();
    spec.and_then(|spec| spec.ports.as_deref())
        .unwrap_or_default()
}

/// The addresses of a pod that are addresses.
pub(super) fn addresses(pod: &Pod) -> impl Iterator<Item = IpAddr> {
    let status = pod.status.as_ref();
    let all = status.and_then(|status| status.pod_ips.as_deref());
    all.unwrap_or_default()
        .iter()
        .filter_map(|address| address.ip.parse().ok())
}

/// The name that the pod has under the Service, if the two agree on one.
pub(super) fn hostname(pod: &Pod, service: &Service) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let belongs = spec.subdomain.is_some() && spec.subdomain == service.metadata.name;
    spec.hostname
        .clone()
        .filter(|name| belongs && !name.is_empty())
}

/// The port of a pod that a port of the Service leads to; none if it is named and the pod has none
/// of that name.
pub(super) fn target_port(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match &port.target_port {
        Some(IntOrString::Int(number)) => return Some(*number),
        Some(IntOrString::String(name)) => name,
        None => return Some(port.port),
    };
    let spec = pod.spec.as_ref()?;
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars =
        sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let found = |container: &Container| {
        let ports = container.ports.iter().flatten();
        let mut named = ports.filter(|candidate| {
            candidate.name.as_ref() == Some(name)
                && protocol(candidate.protocol.as_deref()) == protocol(port.protocol.as_deref())
        });
        named.next().map(|candidate| candidate.container_port)
    };
    spec.containers.iter().chain(sidecars).find_map(found)
}

/// A protocol, where none means TCP.
fn protocol(protocol: Option<&str>) -> &str {
    protocol.unwrap_or("TCP")
}

/// Which pod an endpoint is.
pub(super) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {
                "hostname": "one", "subdomain": "web",
                "initContainers": [
                    {"name": "side", "restartPolicy": "Always",
                     "ports": [{"name": "metrics", "containerPort": 9090}]},
                    {"name": "first", "ports": [{"name": "early", "containerPort": 1}]},
                ],
                "containers": [{"name": "main", "ports": [
                    {"name": "web", "containerPort": 53, "protocol": "UDP"},
                    {"name": "web", "containerPort": 8080},
                ]}],
            },
        }))
        .unwrap()
    }

    fn port(target: &serde_json::Value) -> ServicePort {
        serde_json::from_value(json!({"port": 80, "protocol": "TCP", "targetPort": target}))
            .unwrap()
    }

    #[test]
    fn a_named_port_is_the_containers_of_that_name_and_protocol() {
        assert_eq!(target_port(&pod(), &port(&json!("web"))), Some(8080));
        assert_eq!(target_port(&pod(), &port(&json!(81))), Some(81));
        assert_eq!(target_port(&pod(), &port(&json!("nosuch"))), None);
    }

    #[test]
    fn sidecars_have_ports_and_other_init_containers_do_not() {
        assert_eq!(target_port(&pod(), &port(&json!("metrics"))), Some(9090));
        assert_eq!(target_port(&pod(), &port(&json!("early"))), None);
    }

    #[test]
    fn a_pod_has_a_name_under_the_service_of_its_subdomain() {
        let service = |name: &str| -> Service {
            serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
        };
        assert_eq!(hostname(&pod(), &service("web")).as_deref(), Some("one"));
        assert_eq!(hostname(&pod(), &service("other")), None);
    }
}
