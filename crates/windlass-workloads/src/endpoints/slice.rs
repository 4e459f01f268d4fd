//! One EndpointSlice: what is in it, and what it is called by.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::candidate;
use crate::pod;

/// Whose endpoints these are.
pub(super) const SERVICE: &str = "kubernetes.io/service-name";
/// Who keeps them.
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The controller's name there.
pub(super) const CONTROLLER: &str = "endpointslice-controller.k8s.io";
/// That the Service has no address of its own.
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";
const ZONE: &str = "topology.kubernetes.io/zone";

/// A family of addresses, as slices name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    fn has(self, address: &IpAddr) -> bool {
        match self {
            Self::V4 => address.is_ipv4(),
            Self::V6 => address.is_ipv6(),
        }
    }
}

/// The families a Service has slices of. Old Services do not say, and their address does.
pub(super) fn families(service: &Service) -> Vec<Family> {
    let spec = service.spec.as_ref();
    let said = spec.and_then(|spec| spec.ip_families.as_deref());
    let said = said.unwrap_or_default();
    let both = [Family::V4, Family::V6];
    let mut families = Vec::from(both);
    families.retain(|family| said.iter().any(|name| name == family.name()));
    if !families.is_empty() {
        return families;
    }
    let address = spec.and_then(|spec| spec.cluster_ip.as_deref()?.parse().ok());
    let mut families = Vec::from(both);
    families.retain(|family| address.is_none_or(|address: IpAddr| family.has(&address)));
    families
}

/// The ports of a pod that the Service's ports lead to.
pub(super) fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let ports = candidate::service_ports(service).iter();
    let led_to = ports.filter_map(|port| {
        Some(EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(candidate::target_port(pod, port)?),
            protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
            app_protocol: port.app_protocol.clone(),
        })
    });
    led_to.collect()
}

/// A pod as an endpoint of a Service; none if it has no address of this family.
pub(super) fn endpoint(
    pod: &Pod,
    node: Option<&Node>,
    service: &Service,
    family: Family,
) -> Option<Endpoint> {
    let addresses = candidate::addresses(pod).filter(|address| family.has(address));
    let mut addresses: Vec<String> = addresses.map(|address| address.to_string()).collect();
    if addresses.is_empty() {
        return None;
    }
    addresses.sort();
    let (serving, terminating) = (pod::is_ready(pod), pod::is_terminating(pod));
    let zone = node.and_then(|node| node.metadata.labels.as_ref()?.get(ZONE).cloned());
    Some(Endpoint {
        addresses,
        conditions: Some(EndpointConditions {
            // Older readers know nothing but this, and must not be sent to what is going.
            ready: Some(candidate::publishes_unready(service) || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: candidate::hostname(pod, service),
        node_name: pod::node_name(pod).map(str::to_owned),
        target_ref: Some(candidate::reference(pod)),
        zone: zone.filter(|zone| !zone.is_empty()),
        ..Endpoint::default()
    })
}

/// The labels of a Service's slices: its own, and those by which slices are found.
pub(super) fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.retain(|key, _| !is_reserved(key));
    if candidate::is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    let name = service.metadata.name.clone().unwrap_or_default();
    labels.insert(SERVICE.to_owned(), name);
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    labels
}

fn is_reserved(label: &str) -> bool {
    matches!(label, SERVICE | MANAGED_BY | HEADLESS)
}

/// Whether the labels that a slice has from its Service are others than the Service's.
pub(super) fn labels_differ(slice: &EndpointSlice, wanted: &BTreeMap<String, String>) -> bool {
    let none = BTreeMap::new();
    let has = slice.metadata.labels.as_ref().unwrap_or(&none);
    let own = |labels: &BTreeMap<String, String>| -> Vec<(String, String)> {
        let own = labels.iter().filter(|(key, _)| !is_reserved(key));
        own.map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    own(has) != own(wanted)
}

/// A slice without endpoints, to be created.
pub(super) fn empty(service: &Service, family: Family, ports: Vec<EndpointPort>) -> EndpointSlice {
    let name = service.metadata.name.as_deref().unwrap_or_default();
    EndpointSlice {
        address_type: family.name().to_owned(),
        endpoints: Some(Vec::new()),
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels(service)),
            ..ObjectMeta::default()
        },
        ports: Some(ports),
    }
}

/// What tells one group of ports from another.
pub(super) type PortsKey = Vec<(String, i32, String, String)>;

/// The key of these ports, whatever their order.
pub(super) fn ports_key(ports: &[EndpointPort]) -> PortsKey {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let key = ports.iter().map(|port| {
        let (name, protocol) = (text(&port.name), text(&port.protocol));
        (
            name,
            port.port.unwrap_or(0),
            protocol,
            text(&port.app_protocol),
        )
    });
    let mut key: PortsKey = key.collect();
    key.sort();
    key
}
