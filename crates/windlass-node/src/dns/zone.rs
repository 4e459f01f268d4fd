//! What names of the cluster stand for, as a pure function of the Services.
//!
//! | name | stands for |
//! | --- | --- |
//! | `<service>.<namespace>.svc` | the Service's address; its ready endpoints when it is headless; another name when it is an ExternalName |
//! | `<hostname>.<service>.<namespace>.svc` | that endpoint of a headless Service; one without a host name is called `10-244-0-9` |
//! | `_<port>._<protocol>.<service>.<namespace>.svc` | where that port is (SRV) |
//! | `10-244-0-9.<namespace>.pod` | that address |
//!
//! Endpoints of Services that publish not-ready addresses are ready in their slices.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

use super::CLUSTER_DOMAIN;
use crate::network::Picture;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Addresses; possibly none.
    Addresses(Vec<Ipv4Addr>),
    /// Ports, each with the name of whom they are at.
    Ports(Vec<(u16, String)>),
    /// Another name.
    Alias(String),
    /// Nothing of its own, but there are names below it.
    Nothing,
    /// There is no such name.
    Unknown,
}

/// What a name (in lower case, without the last dot) stands for.
pub fn answer(picture: &Picture, name: &str) -> Answer {
    if name == CLUSTER_DOMAIN {
        return Answer::Nothing;
    }
    let Some(inner) = name
        .strip_suffix(CLUSTER_DOMAIN)
        .and_then(|inner| inner.strip_suffix('.'))
    else {
        return Answer::Unknown;
    };
    let labels: Vec<&str> = inner.split('.').collect();
    match labels.as_slice() {
        ["svc" | "pod"] => Answer::Nothing,
        [namespace, "svc"] if has_services(picture, namespace) => Answer::Nothing,
        [pod, _, "pod"] => match dashed(pod) {
            Some(address) => Answer::Addresses(vec![address]),
            None => Answer::Unknown,
        },
        [before @ .., service, namespace, "svc"] => match find(picture, namespace, service) {
            Some(found) => below(picture, found, before),
            None => Answer::Unknown,
        },
        _ => Answer::Unknown,
    }
}

/// The name of an address, the other way round: `9.0.244.10.in-addr.arpa`.
pub fn name_of(picture: &Picture, address: Ipv4Addr) -> Option<String> {
    let text = address.to_string();
    let of_service = picture.services.iter().find_map(|service| {
        let own = service.spec.as_ref()?.cluster_ip.as_deref()?;
        (own == text).then(|| full_name(service))
    });
    of_service.or_else(|| {
        picture.services.iter().find_map(|service| {
            let found = endpoints(picture, service).find(|(endpoint, _)| {
                endpoint.hostname.is_some() && endpoint.addresses.first() == Some(&text)
            })?;
            Some(format!("{}.{}", host(found.0)?, full_name(service)))
        })
    })
}

/// What is below a Service's name.
fn below(picture: &Picture, service: &Service, before: &[&str]) -> Answer {
    let spec = service.spec.as_ref();
    if let Some(other) = spec.and_then(|spec| spec.external_name.clone())
        && spec.and_then(|spec| spec.type_.as_deref()) == Some("ExternalName")
    {
        return if before.is_empty() {
            Answer::Alias(other)
        } else {
            Answer::Unknown
        };
    }
    let address: Option<Ipv4Addr> = spec
        .and_then(|spec| spec.cluster_ip.as_deref())
        .and_then(|ip| ip.parse().ok());
    match (before, address) {
        ([], Some(address)) => Answer::Addresses(vec![address]),
        ([], None) => {
            let ready = endpoints(picture, service).filter_map(|(endpoint, _)| ip(endpoint));
            let mut addresses: Vec<Ipv4Addr> = ready.collect();
            addresses.sort_unstable();
            addresses.dedup();
            Answer::Addresses(addresses)
        }
        ([port, protocol], address) if port.starts_with('_') && protocol.starts_with('_') => {
            ports(picture, service, &port[1..], &protocol[1..], address)
        }
        ([wanted], None) => {
            let same = |endpoint: &&Endpoint| host(endpoint).as_deref() == Some(*wanted);
            let all = endpoints(picture, service).map(|(endpoint, _)| endpoint);
            let found: Vec<Ipv4Addr> = all.filter(same).filter_map(ip).collect();
            if found.is_empty() {
                Answer::Unknown
            } else {
                Answer::Addresses(found)
            }
        }
        _ => Answer::Unknown,
    }
}

/// Where a port of a Service is.
fn ports(
    picture: &Picture,
    service: &Service,
    name: &str,
    protocol: &str,
    address: Option<Ipv4Addr>,
) -> Answer {
    let is_it = |known: Option<&str>, transport: Option<&str>| {
        known.unwrap_or_default() == name
            && transport.unwrap_or("TCP").eq_ignore_ascii_case(protocol)
    };
    let number = |port: i32| u16::try_from(port).ok();
    let mut found = Vec::new();
    if address.is_some() {
        let ports = service
            .spec
            .iter()
            .flat_map(|spec| spec.ports.iter().flatten());
        let ports = ports.filter(|port| is_it(port.name.as_deref(), port.protocol.as_deref()));
        let ports = ports.filter_map(|port| number(port.port));
        found.extend(ports.map(|port| (port, full_name(service))));
    } else {
        for (endpoint, slice) in endpoints(picture, service) {
            let Some(host) = host(endpoint) else {
                continue;
            };
            let ports = slice.ports.iter().flatten();
            let ports = ports.filter(|port| is_it(port.name.as_deref(), port.protocol.as_deref()));
            let ports = ports.filter_map(|port| port.port.and_then(number));
            found.extend(ports.map(|port| (port, format!("{host}.{}", full_name(service)))));
        }
    }
    if found.is_empty() {
        Answer::Unknown
    } else {
        Answer::Ports(found)
    }
}

/// The ready endpoints of a Service.
fn endpoints<'a>(
    picture: &'a Picture,
    service: &Service,
) -> impl Iterator<Item = (&'a Endpoint, &'a EndpointSlice)> {
    let namespace = service.metadata.namespace.clone().unwrap_or_default();
    let name = service.metadata.name.clone().unwrap_or_default();
    let own = move |slice: &&EndpointSlice| {
        crate::network::service_of(slice) == Some((namespace.as_str(), name.as_str()))
    };
    let slices = picture.slices.iter().map(AsRef::as_ref).filter(own);
    slices.flat_map(|slice| {
        let ready = |endpoint: &&Endpoint| {
            endpoint.conditions.as_ref().and_then(|c| c.ready) != Some(false)
        };
        slice
            .endpoints
            .iter()
            .flatten()
            .filter(ready)
            .map(move |endpoint| (endpoint, slice))
    })
}

fn ip(endpoint: &Endpoint) -> Option<Ipv4Addr> {
    endpoint.addresses.first()?.parse().ok()
}

/// The label of an endpoint below its Service's name.
fn host(endpoint: &Endpoint) -> Option<String> {
    let own = endpoint.hostname.clone();
    own.or_else(|| Some(ip(endpoint)?.to_string().replace('.', "-")))
}

fn full_name(service: &Service) -> String {
    let name = service.metadata.name.as_deref().unwrap_or_default();
    let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    format!("{name}.{namespace}.svc.{CLUSTER_DOMAIN}")
}

fn find<'a>(picture: &'a Picture, namespace: &str, name: &str) -> Option<&'a Service> {
    let is_it = |service: &&std::sync::Arc<Service>| {
        service.metadata.name.as_deref() == Some(name)
            && service.metadata.namespace.as_deref() == Some(namespace)
    };
    picture.services.iter().find(is_it).map(AsRef::as_ref)
}

fn has_services(picture: &Picture, namespace: &str) -> bool {
    let own = |service: &std::sync::Arc<Service>| {
        service.metadata.namespace.as_deref() == Some(namespace)
    };
    picture.services.iter().any(own)
}

fn dashed(label: &str) -> Option<Ipv4Addr> {
    label.replace('-', ".").parse().ok()
}

#[cfg(test)]
mod tests;
