//! The pod of a member: etcd with the flags of the tutorial, by DNS names.
//!
//! Its container is started again whenever it ends: its data folder outlives it, in the pod's own
//! volume or in a claim, so it comes back as the member it was. The flags that begin or join a
//! cluster are looked at by etcd only where its data folder is empty.

use k8s_openapi::{
    api::core::v1::{
        Affinity, Container, ContainerPort, EmptyDirVolumeSource, HTTPGetAction,
        PersistentVolumeClaimVolumeSource, Pod, PodAffinityTerm, PodAntiAffinity, PodSpec, Probe,
        Volume, VolumeMount, WeightedPodAffinityTerm,
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};

use super::{labels, labels_of_member, metadata};
use crate::{
    decision::Start,
    kind::{EtcdClusterSpec, PodPolicy},
    member::{CLIENT_PORT, Names, PEER_PORT},
};

/// Where the volume is.
const FOLDER: &str = "/var/etcd";
/// The volume's name.
const VOLUME: &str = "etcd-data";

/// The pod of a member.
pub(crate) fn pod(
    names: Names<'_>,
    spec: &EtcdClusterSpec,
    image: &str,
    member: &str,
    start: Start,
    peers: &[String],
) -> Pod {
    let policy = spec.pod.clone().unwrap_or_default();
    let mut metadata = metadata(names.cluster, member);
    metadata.generate_name = Some(format!("{}-", names.cluster));
    let mut labels = policy.labels.clone();
    labels.extend(labels_of_member(names.cluster, member));
    metadata.labels = Some(labels);
    metadata.annotations = (!policy.annotations.is_empty()).then(|| policy.annotations.clone());
    let volume = Volume {
        name: VOLUME.to_owned(),
        persistent_volume_claim: spec
            .storage
            .as_ref()
            .map(|_| PersistentVolumeClaimVolumeSource {
                claim_name: member.to_owned(),
                ..PersistentVolumeClaimVolumeSource::default()
            }),
        empty_dir: spec.storage.is_none().then(EmptyDirVolumeSource::default),
        ..Volume::default()
    };
    Pod {
        metadata,
        spec: Some(PodSpec {
            hostname: Some(member.to_owned()),
            subdomain: Some(names.cluster.to_owned()),
            restart_policy: Some("Always".to_owned()),
            automount_service_account_token: Some(false),
            containers: vec![container(names, image, &policy, member, start, peers)],
            volumes: Some(vec![volume]),
            node_selector: (!policy.node_selector.is_empty()).then_some(policy.node_selector),
            affinity: Some(policy.affinity.unwrap_or_else(|| apart(names.cluster))),
            tolerations: (!policy.tolerations.is_empty()).then_some(policy.tolerations),
            security_context: policy.security_context,
            ..PodSpec::default()
        }),
        ..Pod::default()
    }
}

fn container(
    names: Names<'_>,
    image: &str,
    policy: &PodPolicy,
    member: &str,
    start: Start,
    peers: &[String],
) -> Container {
    let port = |name: &str, number: i32| ContainerPort {
        name: Some(name.to_owned()),
        container_port: number,
        ..ContainerPort::default()
    };
    Container {
        name: "etcd".to_owned(),
        image: Some(image.to_owned()),
        command: Some(command(names, member, start, peers)),
        ports: Some(vec![port("client", CLIENT_PORT), port("peer", PEER_PORT)]),
        env: (!policy.etcd_env.is_empty()).then(|| policy.etcd_env.clone()),
        resources: policy.resources.clone(),
        volume_mounts: Some(vec![VolumeMount {
            name: VOLUME.to_owned(),
            mount_path: FOLDER.to_owned(),
            ..VolumeMount::default()
        }]),
        // A member is ready while it serves, which takes a majority. There is no liveness probe:
        // starting a member again because the others are missing makes nothing better.
        readiness_probe: Some(Probe {
            http_get: Some(HTTPGetAction {
                path: Some("/health".to_owned()),
                port: IntOrString::Int(CLIENT_PORT),
                ..HTTPGetAction::default()
            }),
            initial_delay_seconds: Some(1),
            period_seconds: Some(5),
            timeout_seconds: Some(5),
            failure_threshold: Some(3),
            ..Probe::default()
        }),
        ..Container::default()
    }
}

fn command(names: Names<'_>, member: &str, start: Start, peers: &[String]) -> Vec<String> {
    let cluster: Vec<String> = peers
        .iter()
        .map(|peer| format!("{peer}={}", names.peer_url(peer)))
        .collect();
    let state = match start {
        Start::New => "new",
        Start::Existing => "existing",
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
        ("initial-cluster", cluster.join(",")),
        ("initial-cluster-state", state.to_owned()),
        ("initial-cluster-token", names.uid.to_owned()),
    ];
    let flags = flags.map(|(flag, value)| format!("--{flag}={value}"));
    ["etcd".to_owned()].into_iter().chain(flags).collect()
}

/// Members are put on different nodes where there are several.
fn apart(cluster: &str) -> Affinity {
    Affinity {
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![
                WeightedPodAffinityTerm {
                    weight: 100,
                    pod_affinity_term: PodAffinityTerm {
                        topology_key: "kubernetes.io/hostname".to_owned(),
                        label_selector: Some(LabelSelector {
                            match_labels: Some(labels(cluster)),
                            ..LabelSelector::default()
                        }),
                        ..PodAffinityTerm::default()
                    },
                },
            ]),
            ..PodAntiAffinity::default()
        }),
        ..Affinity::default()
    }
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
        let image = spec.image("3.4.23");
        let pod = pod(names, &spec, &image, "example-b", Start::Existing, &peers);
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
                "--initial-cluster=example-a=http://example-a.example.default.svc:2380,\
                 example-b=http://example-b.example.default.svc:2380",
                "--initial-cluster-state=existing",
                "--initial-cluster-token=4b5215fa",
            ]
        );
    }
}
