//! Runs Memcached custom resources as memcached Deployments.
//!
//! The operator is six pure functions: a Deployment and a Service for each Memcached, the labels
//! that tie its pods together, a status from what runs, and what its webhooks fill in and refuse.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            Container, ContainerPort, Pod, PodSpec, PodTemplateSpec, Probe, ResourceRequirements,
            Service, ServicePort, ServiceSpec, TCPSocketAction,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{Condition, LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Controller, DependentExt, Observed, Operator, Verdict, Watched, Webhook};

const PORT: i32 = 11211;

/// How many pods there are of a Memcached that does not say.
const SIZE: i32 = 1;

/// The name of a Memcached is the value of a label.
const LONGEST_NAME: usize = 63;

/// A Memcached to try it with.
pub const SAMPLE: &str = include_str!("../config/samples/cache_v1_memcached.yaml");

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cache.example.com",
    version = "v1",
    kind = "Memcached",
    namespaced,
    status = "MemcachedStatus",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn = r#"{"name":"Size","type":"integer","jsonPath":".spec.size"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.readyReplicas"}"#,
    printcolumn = r#"{"name":"Available","type":"string","jsonPath":".status.conditions[?(@.type==\"Available\")].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
pub struct MemcachedSpec {
    /// How many memcached pods run; 1 unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub size: Option<i32>,
    /// Whether a Service makes them reachable under one name.
    #[serde(default)]
    pub expose: bool,
}

/// What runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// The names of the pods that are not terminating, sorted.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// How many they are.
    #[serde(default)]
    pub replicas: i32,
    /// How many of them are ready.
    #[serde(default)]
    pub ready_replicas: i32,
    /// The labels they have, for whoever scales them.
    #[serde(default)]
    pub selector: String,
    /// The generation this tells of, kept by the framework.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Available, Progressing and Degraded, kept by the framework.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// The operator.
pub fn operator() -> Operator {
    Operator::new("memcached-operator")
        .controller(
            Controller::of::<Memcached>()
                .dependent(deployment_for)
                .dependent(service_for.when(|m| m.spec.expose))
                .reads(Pod::selected_by(labels_of))
                .status(status_of)
                .telling(),
        )
        .webhook(
            Webhook::of::<Memcached>()
                .defaulted_by(fill_in)
                .validated_by(judge),
        )
        .sample(&Memcached::new(
            "example-memcached",
            MemcachedSpec {
                size: Some(3),
                expose: true,
            },
        ))
}

fn fill_in(memcached: &mut Memcached) {
    memcached.spec.size.get_or_insert(SIZE);
}

fn judge(memcached: &Memcached, _: Option<&Memcached>) -> Verdict {
    let mut verdict = Verdict::allow();
    let name = memcached.name_any();
    if name.len() > LONGEST_NAME {
        let why =
            format!("must be no more than {LONGEST_NAME} characters: it is the value of a label");
        verdict.invalid("metadata.name", name, why);
    }
    if memcached.spec.size == Some(0) {
        verdict.warn("spec.size is 0: no memcached runs");
    }
    verdict
}

/// The labels of everything that belongs to one Memcached, and of nothing else.
fn labels_of(memcached: &Memcached) -> BTreeMap<String, String> {
    [
        ("app", "memcached".to_owned()),
        ("memcached", memcached.name_any()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

fn deployment_for(memcached: &Memcached) -> Deployment {
    let labels = labels_of(memcached);
    Deployment {
        metadata: metadata_of(memcached, "deployment"),
        spec: Some(DeploymentSpec {
            replicas: Some(memcached.spec.size.unwrap_or(SIZE)),
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec {
                    containers: vec![container()],
                    ..PodSpec::default()
                }),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn container() -> Container {
    let requests = [("cpu", "100m"), ("memory", "128Mi")];
    Container {
        name: "memcached".to_owned(),
        image: Some("memcached:1.6.6".to_owned()),
        ports: Some(vec![ContainerPort {
            container_port: PORT,
            name: Some("memcached".to_owned()),
            ..ContainerPort::default()
        }]),
        resources: Some(ResourceRequirements {
            requests: Some(
                requests
                    .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
                    .into(),
            ),
            ..ResourceRequirements::default()
        }),
        liveness_probe: Some(Probe {
            tcp_socket: Some(TCPSocketAction {
                port: IntOrString::Int(PORT),
                host: None,
            }),
            initial_delay_seconds: Some(30),
            period_seconds: Some(10),
            ..Probe::default()
        }),
        ..Container::default()
    }
}

fn service_for(memcached: &Memcached) -> Service {
    Service {
        metadata: metadata_of(memcached, "service"),
        spec: Some(ServiceSpec {
            selector: Some(labels_of(memcached)),
            ports: Some(vec![ServicePort {
                name: Some("memcached".to_owned()),
                port: PORT,
                target_port: Some(IntOrString::String("memcached".to_owned())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

fn metadata_of(memcached: &Memcached, what: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(format!("{}-{what}", memcached.name_any())),
        namespace: memcached.namespace(),
        labels: Some(labels_of(memcached)),
        ..ObjectMeta::default()
    }
}

fn status_of(memcached: &Memcached, observed: &Observed) -> MemcachedStatus {
    let running = || {
        observed
            .all::<Pod>()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
    };
    let mut nodes: Vec<String> = running().map(ResourceExt::name_any).collect();
    nodes.sort_unstable();
    let deployment = observed
        .first::<Deployment>()
        .and_then(|deployment| deployment.status.as_ref());
    let count = |of: Option<i32>| of.unwrap_or(0);
    let selector = labels_of(memcached);
    let selector = selector.iter().map(|(key, value)| format!("{key}={value}"));
    let selector: Vec<String> = selector.collect();
    MemcachedStatus {
        nodes,
        replicas: count(deployment.and_then(|status| status.replicas)),
        ready_replicas: count(deployment.and_then(|status| status.ready_replicas)),
        selector: selector.join(","),
        ..MemcachedStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memcached(name: &str, size: i32) -> Memcached {
        let mut memcached = Memcached::new(
            name,
            MemcachedSpec {
                size: Some(size),
                expose: false,
            },
        );
        memcached.metadata.namespace = Some("n".to_owned());
        memcached
    }

    #[test]
    fn the_deployment_is_the_one_of_the_tutorial() {
        let deployment = deployment_for(&memcached("cache", 3));
        assert_eq!(
            deployment.metadata.name.as_deref(),
            Some("cache-deployment")
        );
        let spec = deployment.spec.unwrap();
        assert_eq!(spec.replicas, Some(3));
        let container = serde_json::to_value(&spec.template.spec.unwrap().containers[0]).unwrap();
        assert_eq!(
            container,
            serde_json::json!({
                "name": "memcached",
                "image": "memcached:1.6.6",
                "ports": [{"containerPort": 11211, "name": "memcached"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                "livenessProbe": {"tcpSocket": {"port": 11211}, "initialDelaySeconds": 30, "periodSeconds": 10},
            })
        );
    }

    #[test]
    fn two_instances_never_select_each_others_pods() {
        let selector = |name| {
            deployment_for(&memcached(name, 1))
                .spec
                .unwrap()
                .selector
                .match_labels
        };
        assert_ne!(selector("one"), selector("two"));
        let deployment = deployment_for(&memcached("one", 1)).spec.unwrap();
        assert_eq!(
            deployment.template.metadata.unwrap().labels,
            deployment.selector.match_labels
        );
    }

    #[test]
    fn a_negative_size_is_refused_by_the_schema() {
        let crd = serde_json::to_value(&operator().crds()[0]).unwrap();
        let size =
            "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/minimum";
        assert_eq!(
            crd.pointer(size).and_then(serde_json::Value::as_f64),
            Some(0.0)
        );
    }

    #[test]
    fn the_role_holds_what_it_needs_and_nothing_else() {
        let rules = operator().description();
        let mut rules: Vec<String> = rules
            .rules()
            .map(|rule| {
                format!(
                    "{}/{} {}",
                    rule.group,
                    rule.resource,
                    Vec::from_iter(rule.verbs.clone()).join(",")
                )
            })
            .collect();
        rules.sort();
        rules.dedup();
        assert_eq!(
            rules,
            [
                "/pods list,watch",
                "/secrets list,update,watch",
                "/services create,delete,get,list,patch,watch",
                "admissionregistration.k8s.io/mutatingwebhookconfigurations list,update,watch",
                "admissionregistration.k8s.io/validatingwebhookconfigurations list,update,watch",
                "apps/deployments create,delete,get,list,patch,watch",
                "cache.example.com/memcacheds list,watch",
                "cache.example.com/memcacheds patch",
                "cache.example.com/memcacheds/finalizers update",
                "cache.example.com/memcacheds/status patch",
                "events.k8s.io/events create,patch",
            ]
        );
    }
}
