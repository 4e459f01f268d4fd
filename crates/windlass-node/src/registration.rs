//! How a node makes itself known: its Node object, and the Lease that says it is still there.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec, NodeStatus,
    NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use windlass::{
    handle::{Access, Verb},
    testing::{Clock, Environment},
};

/// The version of Kubernetes whose kubelet this node behaves like.
const KUBELET_VERSION: &str = concat!("v1.36.3+windlass.", env!("CARGO_PKG_VERSION"));
const MANAGER: &str = "windlass-node";
const LEASE_NAMESPACE: &str = "kube-node-lease";
const LEASE_SECONDS: i32 = 40;

/// The facts about a node.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) host_ip: String,
    /// The port of its server, if it has one.
    pub(crate) port: Option<u16>,
    /// `process://…`, as `kubectl get nodes -o wide` shows it.
    pub(crate) runtime: String,
    pub(crate) cpus: usize,
    pub(crate) memory_kib: u64,
    pub(crate) pods: u32,
    pub(crate) system: System,
}

/// The facts about the machine that nobody decides by.
#[derive(Debug, Clone, Default)]
pub(crate) struct System {
    pub(crate) machine_id: String,
    pub(crate) boot_id: String,
    pub(crate) kernel: String,
    pub(crate) os_image: String,
}

/// What registering needs to be allowed.
pub(crate) fn grants() -> Vec<Access> {
    vec![
        Access::of::<Node>([Verb::Get, Verb::Create, Verb::Patch]),
        Access::resource("", "nodes/status", [Verb::Patch]),
        Access::of::<Lease>([Verb::Get, Verb::Create, Verb::Patch]),
    ]
}

/// Makes the Node object, or brings it up to date.
pub(crate) async fn register(
    client: &kube::Client,
    facts: &Facts,
    environment: &Environment,
) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let params = PatchParams::apply(MANAGER).force();
    let node = node(facts);
    let present = nodes
        .patch(&facts.name, &params, &Patch::Apply(&node))
        .await?;
    let before = present.status.unwrap_or_default();
    let status = status(facts, &before, &environment.clock);
    let body = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": facts.name},
        "status": status,
    });
    nodes
        .patch_status(&facts.name, &params, &Patch::Apply(body))
        .await?;
    Ok(())
}

/// Says that the node is still there.
pub(crate) async fn renew(client: &kube::Client, name: &str, clock: &Clock) -> kube::Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name.to_owned()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(clock.micro_time()),
            ..LeaseSpec::default()
        }),
    };
    let params = PatchParams::apply(MANAGER).force();
    leases.patch(name, &params, &Patch::Apply(&lease)).await?;
    Ok(())
}

/// Takes back the word that the node renews: without a Lease it is taken at its own.
pub(crate) async fn withdraw(client: &kube::Client, name: &str) -> kube::Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
    match leases.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map(|_| ()),
    }
}

fn node(facts: &Facts) -> Node {
    let labels = [
        ("kubernetes.io/hostname", facts.name.as_str()),
        ("kubernetes.io/os", std::env::consts::OS),
        ("kubernetes.io/arch", architecture()),
    ];
    Node {
        metadata: ObjectMeta {
            name: Some(facts.name.clone()),
            labels: Some(
                labels
                    .iter()
                    .map(|(k, v)| ((*k).into(), (*v).into()))
                    .collect(),
            ),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec::default()),
        status: None,
    }
}

fn status(facts: &Facts, before: &NodeStatus, clock: &Clock) -> NodeStatus {
    let capacity: BTreeMap<String, Quantity> = [
        ("cpu".to_owned(), Quantity(facts.cpus.to_string())),
        (
            "memory".to_owned(),
            Quantity(format!("{}Ki", facts.memory_kib)),
        ),
        ("pods".to_owned(), Quantity(facts.pods.to_string())),
    ]
    .into();
    let address = |type_: &str, address: &str| NodeAddress {
        type_: type_.to_owned(),
        address: address.to_owned(),
    };
    let port = facts.port.map(|port| DaemonEndpoint { port: port.into() });
    NodeStatus {
        addresses: Some(vec![
            address("InternalIP", &facts.host_ip),
            address("Hostname", &facts.name),
        ]),
        allocatable: Some(capacity.clone()),
        capacity: Some(capacity),
        conditions: Some(conditions(before, clock)),
        daemon_endpoints: port.map(|port| NodeDaemonEndpoints {
            kubelet_endpoint: Some(port),
        }),
        node_info: Some(NodeSystemInfo {
            architecture: architecture().to_owned(),
            boot_id: facts.system.boot_id.clone(),
            container_runtime_version: facts.runtime.clone(),
            kernel_version: facts.system.kernel.clone(),
            kube_proxy_version: String::new(),
            kubelet_version: KUBELET_VERSION.to_owned(),
            machine_id: facts.system.machine_id.clone(),
            operating_system: std::env::consts::OS.to_owned(),
            os_image: facts.system.os_image.clone(),
            system_uuid: facts.system.machine_id.clone(),
            ..NodeSystemInfo::default()
        }),
        ..NodeStatus::default()
    }
}

fn conditions(before: &NodeStatus, clock: &Clock) -> Vec<NodeCondition> {
    let all = [
        (
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "memory is not watched",
        ),
        (
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "disk space is not watched",
        ),
        (
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "process numbers are not watched",
        ),
        ("Ready", "True", "KubeletReady", "the node runs pods"),
    ];
    let now = clock.time();
    all.into_iter()
        .map(|(type_, status, reason, message)| {
            let former = before
                .conditions
                .iter()
                .flatten()
                .find(|c| c.type_ == type_);
            let since = former
                .filter(|former| former.status == status)
                .and_then(|former| former.last_transition_time.clone());
            NodeCondition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
                last_heartbeat_time: Some(now.clone()),
                last_transition_time: Some(since.unwrap_or_else(|| now.clone())),
            }
        })
        .collect()
}

/// The architecture by the name Kubernetes uses.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
