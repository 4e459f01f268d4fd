//! The pod of a member: etcd with the flags of the tutorial, by DNS names.
//!
//! Its container is started again whenever it ends: its data folder outlives it, in the pod's own
//! volume or in a claim, so it comes back as the member it was. The flags that begin or join a
//! cluster are looked at by etcd only where its data folder is empty, which must be so only once. So
//! `--initial-cluster` is read from an annotation each time the container is started. When the
//! member has joined, the operator takes the annotation away: with an empty list of members etcd
//! (3.4 to 3.7) starts on its data as before, and ends at once where there is none.

use k8s_openapi::api::core::v1::{
    Affinity, Container, EnvVar, ExecAction, HTTPGetAction, Pod, Probe, Toleration, Volume,
};
use serde_json::{Value, json};
use windlass::object;

use super::{labels, labels_of_member};
use crate::{
    decision::Start,
    kind::{EtcdClusterSpec, PodPolicy},
    member::{CLIENT_PORT, Names, PEER_PORT},
    refusal::line_of,
};

/// Where the volume is.
pub(super) const FOLDER: &str = "/var/etcd";
/// The volume's name.
pub(super) const VOLUME: &str = "etcd-data";

/// The annotation that lets etcd begin or join a cluster in an empty folder: the members, as
/// `--initial-cluster` has them.
pub(crate) const INITIAL_CLUSTER: &str = "etcd.database.coreos.com/initial-cluster";
/// The variable that carries it into the container.
const VARIABLE: &str = "INITIAL_CLUSTER";
/// The key of a taint that no node has.
const JOINED: &str = "etcd.database.coreos.com/joined";

/// The pod of a member.
pub(crate) fn pod(
    names: Names<'_>,
    spec: &EtcdClusterSpec,
    version: &str,
    member: &str,
    start: Start,
    peers: &[String],
) -> Pod {
    let policy = spec.pod.clone().unwrap_or_default();
    let mut labels = policy.labels.clone();
    labels.extend(labels_of_member(names, member));
    let mut annotations = policy.annotations.clone();
    match start {
        Start::New | Start::Join => {
            annotations.insert(INITIAL_CLUSTER.to_owned(), initial_cluster(names, peers));
        }
        Start::Rejoin => {
            annotations.remove(INITIAL_CLUSTER);
        }
    }
    let volume = if spec.storage.is_some() {
        object!(Volume { name: VOLUME, persistent_volume_claim: { claim_name: member } })
    } else {
        object!(Volume {
            name: VOLUME,
            empty_dir: {}
        })
    };
    object!(Pod {
        metadata: {
            name: member,
            generate_name: format!("{}-", names.cluster),
            labels,
            annotations: (!annotations.is_empty()).then_some(annotations),
        },
        spec: {
            hostname: member,
            subdomain: names.cluster,
            restart_policy: "Always",
            automount_service_account_token: false,
            containers: [container(names, spec, version, &policy, member, start)],
            volumes: [volume],
            node_selector: (!policy.node_selector.is_empty()).then_some(policy.node_selector),
            affinity: policy.affinity.unwrap_or_else(|| apart(names.cluster)),
            tolerations: (!policy.tolerations.is_empty()).then_some(policy.tolerations),
            security_context: policy.security_context,
        },
    })
}

fn container(
    names: Names<'_>,
    spec: &EtcdClusterSpec,
    version: &str,
    policy: &PodPolicy,
    member: &str,
    start: Start,
) -> Container {
    object!(Container {
        name: "etcd",
        image: spec.image(version),
        command: command(names, member, start),
        ports: [
            { name: "client", container_port: CLIENT_PORT },
            { name: "peer", container_port: PEER_PORT },
        ],
        env: environment(policy),
        resources: policy.resources.clone(),
        volume_mounts: [{ name: VOLUME, mount_path: FOLDER }],
        // There is no liveness probe: starting a member again because the others are missing makes
        // nothing better.
        readiness_probe: readiness(version),
        // The operator reads there why etcd ended.
        termination_message_policy: "FallbackToLogsOnError",
    })
}

/// A member is ready while it serves, which takes a majority.
///
/// `/health` of etcd 3.4 writes a request of the v2 API into the log each time, on which etcd 3.6
/// panics when it reads that log after an upgrade. `etcdctl` reads a key instead; every image has it.
fn readiness(version: &str) -> Probe {
    let poisons = line_of(version).is_some_and(|line| line < (3, 5));
    let health = object!(HTTPGetAction {
        path: "/health",
        port: CLIENT_PORT
    });
    let etcdctl = object!(ExecAction {
        command: ["etcdctl", "endpoint", "health", "--command-timeout=4s"],
    });
    object!(Probe {
        http_get: (!poisons).then_some(health),
        exec: poisons.then_some(etcdctl),
        initial_delay_seconds: 1,
        period_seconds: 5,
        timeout_seconds: 5,
        failure_threshold: 3,
    })
}

/// The members that a new one is told of.
fn initial_cluster(names: Names<'_>, peers: &[String]) -> String {
    let peers = peers
        .iter()
        .map(|peer| format!("{peer}={}", names.peer_url(peer)));
    peers.collect::<Vec<String>>().join(",")
}

/// The variables asked for, and last the one that no other may replace.
fn environment(policy: &PodPolicy) -> Vec<EnvVar> {
    let mut variables = policy.etcd_env.clone();
    let field = format!("metadata.annotations['{INITIAL_CLUSTER}']");
    variables.push(object!(EnvVar {
        name: VARIABLE,
        value_from: { field_ref: { field_path: field } },
    }));
    variables
}

/// The change of a pod after which its container starts etcd only on the member's data.
///
/// The toleration has no effect by itself. It changes the spec, and so the pod's generation, and the
/// node reports which generation it has seen: then it has seen that the annotation is gone.
pub(crate) fn require_data(pod: &Pod) -> Value {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_ref());
    let mut tolerations = tolerations.cloned().unwrap_or_default();
    if !tolerations
        .iter()
        .any(|one| one.key.as_deref() == Some(JOINED))
    {
        tolerations.push(object!(Toleration {
            key: JOINED,
            operator: "Exists"
        }));
    }
    json!({
        "metadata": {
            "uid": pod.metadata.uid,
            "resourceVersion": pod.metadata.resource_version,
            "annotations": { INITIAL_CLUSTER: null },
        },
        "spec": { "tolerations": tolerations },
    })
}

fn command(names: Names<'_>, member: &str, start: Start) -> Vec<String> {
    let state = match start {
        Start::New => "new",
        Start::Join | Start::Rejoin => "existing",
    };
    let flags = [
        ("data-dir", format!("{FOLDER}/data")),
        ("name", member.to_owned()),
        ("initial-advertise-peer-urls", names.peer_url(member)),
        ("listen-peer-urls", format!("http://0.0.0.0:{PEER_PORT}")),
        (
            "listen-client-urls",
            format!("http://0.0.0.0:{CLIENT_PORT}"),
        ),
        ("advertise-client-urls", names.client_url(member)),
        ("initial-cluster", format!("$({VARIABLE})")),
        ("initial-cluster-state", state.to_owned()),
        ("initial-cluster-token", names.uid.to_owned()),
    ];
    let flags = flags.map(|(flag, value)| format!("--{flag}={value}"));
    ["etcd".to_owned()].into_iter().chain(flags).collect()
}

/// Members are put on different nodes where there are several.
fn apart(cluster: &str) -> Affinity {
    object!(Affinity {
        pod_anti_affinity: {
            preferred_during_scheduling_ignored_during_execution: [{
                weight: 100,
                pod_affinity_term: {
                    topology_key: "kubernetes.io/hostname",
                    label_selector: { match_labels: labels(cluster) },
                },
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_those_of_the_tutorial() {
        let names = Names {
            cluster: "example",
            namespace: "default",
            uid: "4b5215fa",
        };
        let spec = EtcdClusterSpec {
            size: 3,
            ..EtcdClusterSpec::default()
        };
        let peers = ["example-a".to_owned(), "example-b".to_owned()];
        let pod = pod(names, &spec, "3.4.23", "example-b", Start::Join, &peers);
        assert_eq!(
            pod.metadata.annotations.unwrap()[INITIAL_CLUSTER],
            "example-a=http://example-a.example.default.svc:2380,\
             example-b=http://example-b.example.default.svc:2380"
        );
        let container = pod.spec.unwrap().containers.remove(0);
        assert_eq!(container.image.unwrap(), "quay.io/coreos/etcd:v3.4.23");
        assert_eq!(
            container.command.unwrap(),
            [
                "etcd",
                "--data-dir=/var/etcd/data",
                "--name=example-b",
                "--initial-advertise-peer-urls=http://example-b.example.default.svc:2380",
                "--listen-peer-urls=http://0.0.0.0:2380",
                "--listen-client-urls=http://0.0.0.0:2379",
                "--advertise-client-urls=http://example-b.example.default.svc:2379",
                "--initial-cluster=$(INITIAL_CLUSTER)",
                "--initial-cluster-state=existing",
                "--initial-cluster-token=4b5215fa",
            ]
        );
    }

    #[test]
    fn readiness_probe_of_3_4_does_not_ask_health() {
        let asks_health = |version| readiness(version).http_get.is_some();
        let asks_etcdctl = |version| readiness(version).exec.is_some();
        assert!(asks_etcdctl("3.4.23") && !asks_health("3.4.23"));
        for version in ["3.5.35", "v3.6.16", "3.7.3"] {
            assert!(asks_health(version) && !asks_etcdctl(version), "{version}");
        }
    }
}
