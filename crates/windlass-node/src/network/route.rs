//! Where the traffic of Services goes: pure, from Services and EndpointSlices.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::picture::{Picture, service_of};

/// The label by which a slice says whose it is.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// How long a client sticks to an endpoint when the Service does not say so.
const AFFINITY_SECONDS: i32 = 10_800;

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

impl Protocol {
    /// The protocol of that name; others are not served.
    pub fn of(name: Option<&str>) -> Option<Self> {
        match name.unwrap_or("TCP") {
            "TCP" => Some(Self::Tcp),
            "UDP" => Some(Self::Udp),
            _ => None,
        }
    }
}

/// Where an endpoint listens.
pub type Endpoint = (Ipv4Addr, u16);

/// One port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Namespace of the Service.
    pub namespace: String,
    /// Its name.
    pub service: String,
    /// Its uid.
    pub uid: Option<String>,
    /// Its address.
    pub address: Ipv4Addr,
    /// The protocol of the port.
    pub protocol: Protocol,
    /// Its number.
    pub port: u16,
    /// The port of the machine that leads there, too.
    pub node_port: Option<u16>,
    /// How long a client sticks to an endpoint, in seconds.
    pub affinity: Option<u32>,
    /// The endpoints that are ready, in order.
    pub endpoints: Vec<Endpoint>,
}

/// The routes of all Services that have an address, in order.
pub fn routes(picture: &Picture) -> Vec<Route> {
    let mut slices: Slices<'_> = BTreeMap::new();
    for slice in &picture.slices {
        if let Some(service) = service_of(slice) {
            slices.entry(service).or_default().push(slice);
        }
    }
    let services = picture.services.iter();
    let mut routes: Vec<Route> = services
        .flat_map(|service| of_service(service, &slices))
        .collect();
    routes.sort_by(|a, b| {
        let key = |route: &Route| (route.address, route.protocol, route.port);
        key(a).cmp(&key(b))
    });
    routes
}

/// The slices of each Service, by namespace and name.
type Slices<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a EndpointSlice>>;

fn of_service(service: &Service, slices: &Slices<'_>) -> Vec<Route> {
    let Some(spec) = service.spec.as_ref() else {
        return Vec::new();
    };
    let address = spec.cluster_ip.as_deref().and_then(|ip| ip.parse().ok());
    let Some(address) = address else {
        return Vec::new();
    };
    let namespace = service.metadata.namespace.clone().unwrap_or_default();
    let name = service.metadata.name.clone().unwrap_or_default();
    let sticky = spec.session_affinity.as_deref() == Some("ClientIP");
    let seconds = spec
        .session_affinity_config
        .as_ref()
        .and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
    let affinity = sticky.then(|| u32::try_from(seconds.unwrap_or(AFFINITY_SECONDS)).ok());
    let slices = slices.get(&(namespace.as_str(), name.as_str()));
    let slices = slices.map_or(&[][..], Vec::as_slice);
    let ports = spec.ports.iter().flatten().filter_map(|port| {
        let protocol = Protocol::of(port.protocol.as_deref())?;
        Some(Route {
            namespace: namespace.clone(),
            service: name.clone(),
            uid: service.metadata.uid.clone(),
            address,
            protocol,
            port: u16::try_from(port.port).ok()?,
            node_port: port
                .node_port
                .and_then(|port| u16::try_from(port).ok())
                .filter(|port| *port > 0),
            affinity: affinity.flatten(),
            endpoints: endpoints(slices, port.name.as_deref(), protocol),
        })
    });
    ports.collect()
}

/// The ready endpoints of one port.
fn endpoints(slices: &[&EndpointSlice], name: Option<&str>, protocol: Protocol) -> Vec<Endpoint> {
    let mut found = BTreeSet::new();
    for slice in slices {
        let port = slice.ports.iter().flatten().find(|port| {
            port.name.as_deref().unwrap_or_default() == name.unwrap_or_default()
                && Protocol::of(port.protocol.as_deref()) == Some(protocol)
        });
        let port = port.and_then(|port| port.port);
        let Some(port) = port.and_then(|port| u16::try_from(port).ok()) else {
            continue;
        };
        for endpoint in slice.endpoints.iter().flatten() {
            let ready = endpoint.conditions.as_ref().and_then(|c| c.ready);
            // What says nothing is ready.
            if ready != Some(false) {
                let address = endpoint.addresses.first().and_then(|ip| ip.parse().ok());
                found.extend(address.map(|address: Ipv4Addr| (address, port)));
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
pub(super) mod tests;
