//! The Services: one gives members their DNS names, the other is for clients.

use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{labels, metadata};
use crate::member::{CLIENT_PORT, PEER_PORT};

/// The name of the Service for clients.
pub(crate) fn client_name(cluster: &str) -> String {
    format!("{cluster}-client")
}

/// Gives every member a DNS name, also before it is ready: members need each other to become so.
pub(crate) fn peers(cluster: &str) -> Service {
    Service {
        metadata: metadata(cluster, cluster),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            publish_not_ready_addresses: Some(true),
            selector: Some(labels(cluster)),
            ports: Some(vec![port("client", CLIENT_PORT), port("peer", PEER_PORT)]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// Where clients find the members that are ready: none before the cluster has begun, so that nobody
/// writes to a first member that may have to be made again.
pub(crate) fn clients(cluster: &str, begun: bool) -> Service {
    Service {
        metadata: metadata(cluster, &client_name(cluster)),
        spec: Some(ServiceSpec {
            selector: begun.then(|| labels(cluster)),
            ports: Some(vec![port("client", CLIENT_PORT)]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

fn port(name: &str, number: i32) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: number,
        target_port: Some(IntOrString::Int(number)),
        ..ServicePort::default()
    }
}
