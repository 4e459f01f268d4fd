//! Runs Memcached custom resources as memcached Deployments.
//!
//! The operator is six pure functions: a Deployment and a Service for each Memcached, the labels
//! that tie its pods together, a status from what runs, and what its webhooks default and reject.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, ResourceExt, core::Selector};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Webhook, kind::Labels, labels, object, prelude::*, webhook::Verdict};

const PORT: i32 = 11211;

/// How many pods there are of a Memcached that does not say.
const SIZE: i32 = 1;

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// How many memcached pods run; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub size: Option<i32>,
    /// Whether a Service makes them reachable under one name.
    #[serde(default)]
    pub expose: bool,
}

/// What runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemcachedStatus {
    /// The names of the pods that are not terminating, sorted.
    pub nodes: Vec<String>,
    /// How many they are.
    pub replicas: i32,
    /// How many of them are ready.
    pub ready_replicas: i32,
    /// The labels they have, for whoever scales them.
    pub selector: String,
    /// The generation this tells of, kept by the framework.
    pub observed_generation: Option<i64>,
    /// Available, Progressing and Degraded, kept by the framework.
    pub conditions: Vec<Condition>,
}

/// The operator.
pub fn operator() -> Operator {
    let sample = object!(MemcachedSpec {
        size: 3,
        expose: true
    });
    Operator::new("memcached-operator")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(
            Controller::of::<Memcached>()
                .reads(Pod::selected_by(labels_of))
                .dependent(deployment)
                .dependent(service)
                .status(status)
                .record_events(),
        )
        .webhook(Webhook::of().defaulting(default).validating(validate))
        .sample(&Memcached::new("example-memcached", sample))
}

fn default(memcached: &mut Memcached) {
    memcached.spec.size.get_or_insert(SIZE);
}

fn validate(memcached: &Memcached, _: Option<&Memcached>) -> Verdict {
    let mut verdict = Verdict::allow();
    let name = memcached.name_any();
    if name.len() > 63 {
        verdict.invalid("metadata.name", name, "must be no more than 63 characters");
    }
    if memcached.spec.size == Some(0) {
        verdict.warn("spec.size is 0: no memcached runs");
    }
    verdict
}

/// The labels of everything that belongs to one Memcached, and of nothing else.
fn labels_of(memcached: &Memcached) -> Labels {
    labels([("app", "memcached"), ("memcached", &memcached.name_any())])
}

fn deployment(memcached: &Memcached) -> Deployment {
    let labels = labels_of(memcached);
    object!(Deployment {
        metadata: { name: format!("{}-deployment", memcached.name_any()), labels: labels.clone() },
        spec: {
            replicas: memcached.spec.size.unwrap_or(SIZE),
            selector: { match_labels: labels.clone() },
            template: { metadata: { labels: labels }, spec: { containers: [{
                name: "memcached",
                image: "memcached:1.6.6",
                ports: [{ container_port: PORT, name: "memcached" }],
                resources: { requests: { "cpu": "100m", "memory": "128Mi" } },
                liveness_probe: { tcp_socket: { port: PORT }, initial_delay_seconds: 30 },
            }] } },
        },
    })
}

fn service(memcached: &Memcached) -> Option<Service> {
    let service = object!(Service {
        metadata: { name: format!("{}-service", memcached.name_any()), labels: labels_of(memcached) },
        spec: {
            selector: labels_of(memcached),
            ports: [{ name: "memcached", port: PORT, target_port: "memcached" }],
        },
    });
    memcached.spec.expose.then_some(service)
}

fn status(memcached: &Memcached, observed: &Observed) -> MemcachedStatus {
    let pods = observed.read::<Pod>();
    let pods = pods.filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let found = observed.owned::<Deployment>().next();
    let deployment = found.and_then(|one| one.status.clone()).unwrap_or_default();
    MemcachedStatus {
        nodes: pods.map(ResourceExt::name_any).collect(),
        replicas: deployment.replicas.unwrap_or(0),
        ready_replicas: deployment.ready_replicas.unwrap_or(0),
        selector: Selector::from_iter(labels_of(memcached)).to_string(),
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
        let deployment = deployment(&memcached("cache", 3));
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
                "livenessProbe": {"tcpSocket": {"port": 11211}, "initialDelaySeconds": 30},
            })
        );
    }

    #[test]
    fn two_instances_never_select_each_others_pods() {
        let selector = |name| {
            deployment(&memcached(name, 1))
                .spec
                .unwrap()
                .selector
                .match_labels
        };
        assert_ne!(selector("one"), selector("two"));
        let deployment = deployment(&memcached("one", 1)).spec.unwrap();
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
