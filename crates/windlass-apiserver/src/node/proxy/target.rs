//! What a request is passed on to: the address of a pod, of an endpoint of a Service, or of a node.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::StatusCode;
use serde_json::Value;

use super::super::{Address, NodeClient};
use super::address::{Asked, Scheme};
use crate::http::ResourceRequest;
use crate::server::ApiServer;
use crate::status::{ApiError, Result, Subject};
use crate::store::{Key, TableName};

/// Where the node gives pods that are plain processes their addresses: 127.64.0.0/10.
const PODS_OF_THIS_MACHINE: (Ipv4Addr, u32) = (Ipv4Addr::new(127, 64, 0, 0), 10);

/// What a kind names to which requests can be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proxied {
    /// A pod, at its address.
    Pod,
    /// A Service: one of its endpoints.
    Service,
    /// A node, at its own port or another.
    Node,
}

/// How a connection is made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way<'a> {
    Plain,
    /// By TLS with any certificate: pods have none that the server could check.
    Encrypted,
    /// As the server asks nodes, with its own certificate.
    Node(&'a NodeClient),
}

/// Where a request goes.
#[derive(Debug)]
pub(super) struct Target<'a> {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) way: Way<'a>,
    /// Host and port as they stand in a URL, where a port need not be.
    pub(super) authority: String,
}

impl<'a> Target<'a> {
    /// The target of a request's path.
    pub(super) fn find(
        server: &'a ApiServer,
        proxied: Proxied,
        asked: &ResourceRequest,
    ) -> Result<Self> {
        let name = asked.name.as_deref().unwrap_or_default();
        let namespace = asked.namespace.as_deref().unwrap_or_default();
        let of = Where { server, namespace };
        match proxied {
            Proxied::Pod => of.pod(name),
            Proxied::Service => of.service(name),
            Proxied::Node => of.node(name),
        }
    }

    fn new(scheme: Scheme, host: String, port: Option<u16>) -> Self {
        let bracketed = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.clone()
        };
        let (way, usual) = match scheme {
            Scheme::Http => (Way::Plain, 80),
            Scheme::Https => (Way::Encrypted, 443),
        };
        let authority = match port {
            Some(port) => format!("{bracketed}:{port}"),
            None => bracketed,
        };
        Self {
            host,
            port: port.unwrap_or(usual),
            way,
            authority,
        }
    }
}

/// Where names are looked up.
#[derive(Clone, Copy)]
struct Where<'a, 's> {
    server: &'a ApiServer,
    namespace: &'s str,
}

impl<'a> Where<'a, '_> {
    /// An object of this namespace; `missed` is what is said not to be there.
    fn get(self, plural: &str, name: &str, missed: &str) -> Result<Value> {
        self.get_in(self.namespace, plural, name, missed)
    }

    fn get_node(self, name: &str) -> Result<Value> {
        self.get_in("", "nodes", name, "nodes")
    }

    fn get_in(self, namespace: &str, plural: &str, name: &str, missed: &str) -> Result<Value> {
        let table = TableName::new("", plural);
        let found = self.server.store().get(&table, &Key::new(namespace, name));
        let subject = Subject {
            group: "",
            kind: missed,
        };
        let found = found.ok_or_else(|| ApiError::not_found(subject, name))?;
        Ok(found.value())
    }

    fn pod(self, id: &str) -> Result<Target<'a>> {
        let asked = Asked::read(id).ok_or_else(|| invalid("pod", id))?;
        let pod = self.get("pods", asked.name, "pods")?;
        let address = pod["status"]["podIPs"][0]["ip"].as_str();
        let address = self.pod_address(&pod, address.unwrap_or_default())?;
        let port = match asked.port {
            "" => first_port(&pod),
            port => Some(number(port)?),
        };
        Ok(Target::new(asked.scheme, address, port))
    }

    /// The address of a pod, where it is one that requests may be passed on to: what a pod says of
    /// itself must not lead to what listens on this machine alone.
    fn pod_address(self, pod: &Value, address: &str) -> Result<String> {
        let ip: Option<IpAddr> = address.parse().ok();
        let allowed = ip.is_some_and(|ip| is_global_unicast(ip) || self.is_process(pod, ip));
        if allowed {
            Ok(address.to_owned())
        } else {
            Err(ApiError::bad_request("address not allowed"))
        }
    }

    /// Whether an address is that of a plain process: its node is this machine itself.
    fn is_process(self, pod: &Value, ip: IpAddr) -> bool {
        let (base, bits) = PODS_OF_THIS_MACHINE;
        let mask = u32::MAX << (32 - bits);
        let IpAddr::V4(ip) = ip else {
            return false;
        };
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        u32::from(ip) & mask == u32::from(base)
            && self.get_node(node).is_ok_and(|node| {
                internal_ip(&node).is_some_and(|ip| ip == IpAddr::from(Ipv4Addr::LOCALHOST))
            })
    }

    fn service(self, id: &str) -> Result<Target<'a>> {
        let asked = Asked::read(id).ok_or_else(|| invalid("service", id))?;
        let name = asked.name;
        let port = match asked.port.parse::<i64>() {
            Err(_) => asked.port.to_owned(),
            Ok(number) => {
                let service = self.get("services", name, "services")?;
                let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
                let declared = ports.find(|port| port["port"].as_i64() == Some(number));
                let declared = declared.ok_or_else(|| {
                    let message = format!("no service port {number} found for service \"{name}\"");
                    unavailable(message)
                })?;
                declared["name"].as_str().unwrap_or_default().to_owned()
            }
        };
        // Who asks for a Service misses the Service, whichever of its two objects is not there.
        let endpoints = self.get("endpoints", name, "services")?;
        let subsets = endpoints["subsets"].as_array();
        let subsets = subsets.map(Vec::as_slice).unwrap_or_default();
        if subsets.is_empty() {
            let message = format!("no endpoints available for service \"{name}\"");
            return Err(unavailable(message));
        }
        let mut found: Vec<(String, u16)> = Vec::new();
        for subset in subsets {
            let ports = subset["ports"].as_array().into_iter().flatten();
            let named = ports.filter(|known| known["name"].as_str().unwrap_or_default() == port);
            let numbers: Vec<u16> = named
                .filter_map(|port| u16::try_from(port["port"].as_u64()?).ok())
                .collect();
            let addresses = subset["addresses"].as_array().into_iter().flatten();
            for address in addresses.filter_map(|address| self.endpoint(address)) {
                found.extend(numbers.iter().map(|port| (address.clone(), *port)));
            }
        }
        if found.is_empty() {
            let message = format!("no endpoints available for service \"{id}\"");
            return Err(unavailable(message));
        }
        let chosen = self.server.random().below(found.len() as u64);
        let chosen = usize::try_from(chosen).unwrap_or_default();
        let (address, port) = found.swap_remove(chosen);
        Ok(Target::new(asked.scheme, address, Some(port)))
    }

    /// The address of an endpoint, where it is that of a pod of the namespace.
    fn endpoint(self, endpoint: &Value) -> Option<String> {
        let address = endpoint["ip"].as_str()?;
        let of = &endpoint["targetRef"];
        if of["namespace"].as_str() != Some(self.namespace) {
            return None;
        }
        let pod = self.get("pods", of["name"].as_str()?, "pods").ok()?;
        let mut addresses = pod["status"]["podIPs"].as_array()?.iter();
        let has = addresses.any(|known| known["ip"].as_str() == Some(address));
        has.then(|| address.to_owned())
    }

    fn node(self, id: &str) -> Result<Target<'a>> {
        let asked = Asked::read(id).ok_or_else(|| invalid("node", id))?;
        let node = self.get_node(asked.name)?;
        let Address { host, port } = super::super::address_in(&node)?;
        let wanted = match asked.port {
            "" => port,
            text => number(text)?,
        };
        if wanted == port {
            let client = super::super::way_to_nodes(self.server, asked.name)?;
            let target = Target::new(Scheme::Https, host, Some(port));
            return Ok(Target {
                way: Way::Node(client),
                ..target
            });
        }
        // Other ports of a node that is this machine are not the cluster's.
        let ip: Option<IpAddr> = host.parse().ok();
        if !ip.is_some_and(is_global_unicast) {
            return Err(ApiError::bad_request("address not allowed"));
        }
        Ok(Target::new(asked.scheme, host, Some(wanted)))
    }
}

/// The first port that a container declares.
fn first_port(pod: &Value) -> Option<u16> {
    let mut containers = pod["spec"]["containers"].as_array()?.iter();
    let port = containers.find_map(|container| container["ports"][0]["containerPort"].as_u64())?;
    u16::try_from(port).ok()
}

fn internal_ip(node: &Value) -> Option<IpAddr> {
    let mut addresses = node["status"]["addresses"].as_array()?.iter();
    let internal = addresses.find(|address| address["type"] == "InternalIP")?;
    internal["address"].as_str()?.parse().ok()
}

/// A port by its number: what is none cannot be connected to.
fn number(port: &str) -> Result<u16> {
    port.parse().map_err(|_| {
        let why = if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) {
            format!("address {port}: invalid port")
        } else {
            format!("lookup tcp/{port}: unknown port")
        };
        unavailable(format!("error trying to reach service: dial tcp: {why}"))
    })
}

fn invalid(what: &str, id: &str) -> ApiError {
    ApiError::bad_request(format!("invalid {what} request {id:?}"))
}

pub(super) fn unavailable(message: String) -> ApiError {
    let code = StatusCode::SERVICE_UNAVAILABLE;
    ApiError::new(code, "ServiceUnavailable", message)
}

/// As Go reads it: no address of this machine, this link or a group.
fn is_global_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            !(ip.is_unspecified()
                || ip.is_loopback()
                || ip.is_multicast()
                || ip.is_broadcast()
                || ip.is_link_local())
        }
        IpAddr::V6(ip) => {
            let link_local = ip.segments()[0] & 0xffc0 == 0xfe80;
            let mapped = ip.to_ipv4_mapped();
            !(ip == Ipv6Addr::UNSPECIFIED || ip.is_loopback() || ip.is_multicast() || link_local)
                && mapped.is_none_or(|ip| is_global_unicast(ip.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_this_machine_link_or_group_is_not_proxied_to() {
        let global = |text: &str| is_global_unicast(text.parse().unwrap());
        for text in [
            "10.244.0.5",
            "192.0.2.1",
            "240.0.0.1",
            "fd00::1",
            "2001:db8::1",
        ] {
            assert!(global(text), "{text}");
        }
        let others = [
            "127.0.0.1",
            "127.64.0.1",
            "0.0.0.0",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
        ];
        for text in others {
            assert!(!global(text), "{text}");
        }
    }
}
