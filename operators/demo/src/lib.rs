//! The tutorial operator: a Demo is a Deployment that mounts a `ConfigMap` and follows it.
//!
//! Read it from top to bottom: the kind, the operator, and two pure functions.

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Controller, Error, Observed, Operator, Result, Watched, hash_of, labels, object};

/// What each type runs: an image and its port. Any other type runs the first.
const IMAGES: [(&str, &str, u16); 2] = [
    ("memcached", "memcached:1.6.6", 11211),
    ("redis", "redis:7", 6379),
];

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.example.com",
    version = "v1",
    kind = "Demo",
    plural = "demoes",
    namespaced,
    status = "DemoStatus",
    printcolumn = r#"{"name":"Type","type":"string","jsonPath":".spec.type"}"#,
    printcolumn = r#"{"name":"Size","type":"integer","jsonPath":".spec.size"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.readyReplicas"}"#,
    printcolumn = r#"{"name":"Degraded","type":"string","jsonPath":".status.conditions[?(@.type==\"Degraded\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
pub struct DemoSpec {
    /// How many pods run.
    #[schemars(range(min = 0))]
    pub size: i32,
    /// What they run: `redis`, or memcached for any other type. It becomes a label.
    #[schemars(
        length(max = 63),
        regex(pattern = "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
    )]
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "type is immutable"}]))]
    pub r#type: String,
    /// The `ConfigMap` they mount at /etc/demo. When it changes, they are replaced.
    #[schemars(length(min = 1))]
    pub config_map_name: String,
}

/// What runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DemoStatus {
    /// How many pods are ready.
    pub ready_replicas: i32,
    /// The generation of the Demo that this tells of, kept by the framework.
    pub observed_generation: Option<i64>,
    /// The hash of the configuration the pods have, or are getting.
    pub config_hash: String,
    /// Available, Progressing and Degraded, kept by the framework.
    pub conditions: Vec<Condition>,
}

/// The operator.
pub fn operator() -> Operator {
    let demo = DemoSpec {
        size: 3,
        r#type: "demo".to_owned(),
        config_map_name: "demo".to_owned(),
    };
    Operator::new("demo-operator")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(
            Controller::of::<Demo>()
                .reads(ConfigMap::referenced_by(|demo: &Demo| {
                    demo.spec.config_map_name.clone()
                }))
                .dependent(deployment)
                .status(status),
        )
        .sample(&object!(ConfigMap { metadata: { name: "demo" }, data: { "greeting": "hello" } }))
        .sample(&Demo::new("demo-sample", demo))
}

/// The hash of the configuration, or that it is missing: the pods keep running until it is back.
fn config_hash(demo: &Demo, observed: &Observed) -> Result<String> {
    let name = &demo.spec.config_map_name;
    let missing = || Error::waiting("ConfigMapNotFound", format!("configmap {name} is missing"));
    let config: &ConfigMap = observed.get(name).ok_or_else(missing)?;
    Ok(hash_of(&(&config.data, &config.binary_data)))
}

fn deployment(demo: &Demo, observed: &Observed) -> Result<Deployment> {
    let hash = config_hash(demo, observed)?;
    let of_type = |(of, ..): &&(&str, &str, u16)| *of == demo.spec.r#type;
    let (_, image, port) = *IMAGES.iter().find(of_type).unwrap_or(&IMAGES[0]);
    let labels = labels([
        ("app.kubernetes.io/name", "demo"),
        ("app.kubernetes.io/instance", &demo.name_any()),
        ("demo.example.com/type", &demo.spec.r#type),
    ]);
    Ok(object!(Deployment {
        metadata: { name: demo.name_any(), labels: labels.clone() },
        spec: {
            replicas: demo.spec.size,
            selector: { match_labels: labels.clone() },
            template: {
                metadata: { labels: labels, annotations: { "demo.example.com/config-hash": hash } },
                spec: {
                    containers: [{
                        name: "demo",
                        image: image,
                        ports: [{ name: "demo", container_port: port }],
                        volume_mounts: [{ name: "config", mount_path: "/etc/demo", read_only: true }],
                    }],
                    volumes: [{ name: "config", config_map: { name: &demo.spec.config_map_name } }],
                },
            },
        },
    }))
}

fn status(demo: &Demo, observed: &Observed) -> DemoStatus {
    let before = || demo.status.clone().unwrap_or_default().config_hash;
    let deployment: Option<&Deployment> = observed.get(demo.name_any());
    let ready = deployment.and_then(|deployment| deployment.status.as_ref()?.ready_replicas);
    DemoStatus {
        ready_replicas: ready.unwrap_or(0),
        config_hash: config_hash(demo, observed).unwrap_or_else(|_| before()),
        ..DemoStatus::default()
    }
}
