//! The Services: one gives members their DNS names, the other is for clients.

use k8s_openapi::api::core::v1::Service;
use windlass::object;

use super::{labels, selector};
use crate::member::{CLIENT_PORT, Names, PEER_PORT};

/// The name of the Service for clients.
pub(crate) fn client_name(cluster: &str) -> String {
    format!("{cluster}-client")
}

/// Gives every member a DNS name, also before it is ready: members need each other to become so. Not
/// for clients: it also finds a first member before the cluster has begun.
pub(crate) fn peers(names: Names<'_>) -> Service {
    object!(Service {
        metadata: { name: names.cluster, labels: labels(names.cluster) },
        spec: {
            cluster_ip: "None",
            publish_not_ready_addresses: true,
            selector: selector(names),
            ports: [{ name: "peer", port: PEER_PORT, target_port: PEER_PORT }],
        },
    })
}

/// Where clients find the members that are ready: none before the cluster has begun, so that nobody
/// writes to a first member that may have to be made again.
pub(crate) fn clients(names: Names<'_>, begun: bool) -> Service {
    object!(Service {
        metadata: { name: client_name(names.cluster), labels: labels(names.cluster) },
        spec: {
            selector: begun.then(|| selector(names)),
            ports: [{ name: "client", port: CLIENT_PORT, target_port: CLIENT_PORT }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::CLUSTER_UID;

    const NAMES: Names<'static> = Names {
        cluster: "c",
        namespace: "n",
        uid: "4b5215fa",
    };

    #[test]
    fn client_service_of_a_begun_cluster_selects_only_its_own_pods() {
        let spec = |begun| clients(NAMES, begun).spec.unwrap();
        assert_eq!(spec(false).selector, None);
        assert_eq!(spec(true).selector.unwrap()[CLUSTER_UID], "4b5215fa");
    }

    #[test]
    fn headless_service_publishes_no_client_port() {
        let ports = peers(NAMES).spec.unwrap().ports.unwrap();
        let ports: Vec<i32> = ports.iter().map(|port| port.port).collect();
        assert_eq!(ports, [PEER_PORT]);
    }
}
