//! A pod of a DaemonSet: its template, meant for one node.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The label with the revision a pod was made from.
pub(crate) const HASH_LABEL: &str = "controller-revision-hash";
const GENERATION_LABEL: &str = "pod-template-generation";
const GENERATION: &str = "deprecated.daemonset.template.generation";

/// What a daemon stays with: it is part of the node, as long as the node is there at all.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// The tolerations of a daemon, added to its own.
pub(crate) fn tolerate(spec: &mut PodSpec) {
    let network = ("node.kubernetes.io/network-unavailable", "NoSchedule");
    let network = Some(network).filter(|_| spec.host_network == Some(true));
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        let wanted = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        // One that says the same but for its duration is replaced.
        let same = |one: &&mut Toleration| {
            (&one.key, &one.effect, &one.operator)
                == (&wanted.key, &wanted.effect, &wanted.operator)
        };
        match tolerations.iter_mut().find(same) {
            Some(one) => *one = wanted,
            None => tolerations.push(wanted),
        }
    }
}

fn generation(set: &DaemonSet) -> Option<&String> {
    set.metadata.annotations.as_ref()?.get(GENERATION)
}

/// Whether the pod is of this revision.
pub(crate) fn is_updated(set: &DaemonSet, pod: &Pod, hash: &str) -> bool {
    let label = |key: &str| {
        pod.metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(key))
    };
    label(HASH_LABEL).is_some_and(|has| has == hash)
        || generation(set).is_some_and(|wanted| label(GENERATION_LABEL) == Some(wanted))
}

/// The pod for one node, of one revision.
pub(crate) fn pod(set: &DaemonSet, node: &str, hash: &str) -> Pod {
    let template = set
        .spec
        .as_ref()
        .map(|spec| spec.template.clone())
        .unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    let mut labels = metadata.labels.unwrap_or_default();
    if let Some(generation) = generation(set) {
        labels.insert(GENERATION_LABEL.to_owned(), generation.clone());
    }
    labels.insert(HASH_LABEL.to_owned(), hash.to_owned());
    let mut spec = template.spec.unwrap_or_default();
    tolerate(&mut spec);
    bind(&mut spec, node);
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!(
                "{}-",
                set.metadata.name.as_deref().unwrap_or_default()
            )),
            namespace: set.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: metadata.annotations,
            finalizers: metadata.finalizers,
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

/// Leaves the scheduler one node to choose from.
fn bind(spec: &mut PodSpec, node: &str) {
    let name = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let affinity = spec
        .affinity
        .get_or_insert_default()
        .node_affinity
        .get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution = Some(NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm {
            match_fields: Some(vec![name]),
            match_expressions: None,
        }],
    });
}
