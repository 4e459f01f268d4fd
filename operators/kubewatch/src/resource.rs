//! The kinds that can be watched.

use crate::config::{Resources, WatchSpec};

/// A kind to watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Watched {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// What messages call it: the kind, or the plural name of a kind that is not built in.
    pub(crate) kind: String,
    /// Whether objects are sent without `kind` and `apiVersion`, as kubewatch sends built-in ones.
    pub(crate) built_in: bool,
    namespaced: bool,
}

/// Group, version, plural name, kind, and whether its objects have a namespace.
type Fact = (&'static str, &'static str, &'static str, &'static str, bool);

/// The built-in kinds.
#[rustfmt::skip]
pub(crate) const FACTS: [Fact; 20] = [
    ("apps", "v1", "deployments", "Deployment", true),
    ("", "v1", "replicationcontrollers", "ReplicationController", true),
    ("apps", "v1", "replicasets", "ReplicaSet", true),
    ("apps", "v1", "daemonsets", "DaemonSet", true),
    ("apps", "v1", "statefulsets", "StatefulSet", true),
    ("", "v1", "services", "Service", true),
    ("", "v1", "pods", "Pod", true),
    ("batch", "v1", "jobs", "Job", true),
    ("", "v1", "nodes", "Node", false),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false),
    ("", "v1", "serviceaccounts", "ServiceAccount", true),
    ("", "v1", "persistentvolumes", "PersistentVolume", false),
    ("", "v1", "namespaces", "Namespace", false),
    ("", "v1", "secrets", "Secret", true),
    ("", "v1", "configmaps", "ConfigMap", true),
    ("networking.k8s.io", "v1", "ingresses", "Ingress", true),
    ("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true),
    ("events.k8s.io", "v1", "events", "Event", true),
    ("", "v1", "events", "Event", true),
];

/// Which of them are wanted, in that order.
fn wanted(of: &Resources) -> [bool; 20] {
    [
        of.deployment,
        of.replicationcontroller,
        of.replicaset,
        of.daemonset,
        of.statefulset,
        of.services,
        of.pod,
        of.job,
        of.node,
        of.clusterrole,
        of.clusterrolebinding,
        of.serviceaccount,
        of.persistentvolume,
        of.namespace,
        of.secret,
        of.configmap,
        of.ingress,
        of.hpa,
        of.event,
        of.coreevent,
    ]
}

impl Watched {
    /// The kinds that a configuration asks for.
    pub(crate) fn all(config: &WatchSpec) -> Vec<Self> {
        let facts = FACTS.iter().zip(wanted(&config.resource));
        let built_in = facts.filter(|(_, wanted)| *wanted).map(|(fact, _)| {
            let (group, version, plural, kind, namespaced) = *fact;
            Self {
                group: group.to_owned(),
                version: version.to_owned(),
                plural: plural.to_owned(),
                kind: kind.to_owned(),
                built_in: true,
                namespaced,
            }
        });
        let custom = config.customresources.iter().map(|custom| Self {
            group: custom.group.clone(),
            version: custom.version.clone(),
            plural: custom.resource.clone(),
            kind: custom.resource.clone(),
            built_in: false,
            // It is not known, and kubewatch watches them in all namespaces.
            namespaced: false,
        });
        built_in.chain(custom).collect()
    }

    /// `v1` or `group/version`.
    pub(crate) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The path of its objects, of one namespace if only one is watched.
    pub(crate) fn path(&self, namespaces: &[String]) -> String {
        let root = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        match namespaces {
            [only] if self.namespaced => format!("{root}/namespaces/{only}/{}", self.plural),
            _ => format!("{root}/{}", self.plural),
        }
    }
}

impl std::fmt::Display for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.plural)?;
        match self.group.as_str() {
            "" => Ok(()),
            group => write!(f, ".{group}"),
        }
    }
}
