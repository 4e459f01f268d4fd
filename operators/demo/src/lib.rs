//! The tutorial operator: a Demo is a Deployment that mounts a `ConfigMap` and follows it.
//!
//! Read it from top to bottom: the kind, the operator, the reconciler, and two pure functions.

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{
    Context, Controller, Declare, Error, Event, Next, Operator, Owned, Reads, Reconciler, Result,
    Watched,
};

/// A Demo to try it with, and the `ConfigMap` it names.
pub const SAMPLE: &str = concat!(
    include_str!("../config/samples/core_v1_configmap.yaml"),
    include_str!("../config/samples/demo_v1_demo.yaml")
);

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
    let config = ConfigMap {
        data: Some([("greeting".to_owned(), "hello".to_owned())].into()),
        ..named("demo")
    };
    let demo = DemoSpec {
        size: 3,
        r#type: "demo".to_owned(),
        config_map_name: "demo".to_owned(),
    };
    Operator::new("demo-operator")
        .controller(Controller::of::<Demo>().reconciler(DemoReconciler::declare))
        .sample(&config)
        .sample(&Demo::new("demo-sample", demo))
}

/// The handles that the declaration gives: nothing else can be reached.
struct DemoReconciler {
    deployments: Owned<Deployment>,
    configs: Reads<ConfigMap>,
}

impl DemoReconciler {
    fn declare(declare: &mut Declare<Demo>) -> Self {
        let config_of = |demo: &Demo| demo.spec.config_map_name.clone();
        Self {
            deployments: declare.applies(),
            configs: declare.reads(ConfigMap::referenced_by(config_of)),
        }
    }
}

impl Reconciler for DemoReconciler {
    type Object = Demo;

    async fn reconcile(&self, demo: &Demo, ctx: &Context<Demo>) -> Result<Next> {
        let name = &demo.spec.config_map_name;
        let Some(config) = self.configs.get(ctx, name).await? else {
            // What runs goes on running; the ConfigMap's return wakes this Demo.
            let running = self.deployments.get(ctx, demo.name_any()).await?;
            let known = demo.status.clone().unwrap_or_default();
            ctx.leave_status(status_of(running.as_ref(), known.config_hash))?;
            let why = format!("configmap {name} is missing");
            ctx.event(Event::warning("ConfigMapNotFound", &why));
            return Ok(Next::waiting("ConfigMapNotFound", why));
        };
        let hash = windlass::hash_of(&(config.data, config.binary_data));
        let wanted = deployment_for(demo, &hash).map_err(Error::other)?;
        let deployment = self.deployments.apply(ctx, wanted).await?;
        ctx.status(status_of(Some(&deployment), hash)).await?;
        Ok(Next::settled())
    }
}

fn deployment_for(demo: &Demo, hash: &str) -> serde_json::Result<Deployment> {
    let wanted = |(of, ..): &&(&str, &str, u16)| *of == demo.spec.r#type;
    let (_, image, port) = IMAGES.iter().find(wanted).unwrap_or(&IMAGES[0]);
    let labels = json!({
        "app.kubernetes.io/name": "demo",
        "app.kubernetes.io/instance": demo.name_any(),
        "demo.example.com/type": demo.spec.r#type,
    });
    serde_json::from_value(json!({
        "metadata": { "name": demo.name_any(), "labels": labels },
        "spec": {
            "replicas": demo.spec.size,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels, "annotations": { "demo.example.com/config-hash": hash } },
                "spec": {
                    "containers": [{
                        "name": "demo",
                        "image": image,
                        "ports": [{ "name": "demo", "containerPort": port }],
                        "volumeMounts": [{ "name": "config", "mountPath": "/etc/demo", "readOnly": true }],
                    }],
                    "volumes": [{ "name": "config", "configMap": { "name": demo.spec.config_map_name } }],
                },
            },
        },
    }))
}

fn status_of(deployment: Option<&Deployment>, config_hash: String) -> DemoStatus {
    let ready = deployment.and_then(|deployment| deployment.status.as_ref()?.ready_replicas);
    DemoStatus {
        ready_replicas: ready.unwrap_or(0),
        config_hash,
        ..DemoStatus::default()
    }
}

fn named<K: kube::Resource + Default>(name: &str) -> K {
    let mut object = K::default();
    object.meta_mut().name = Some(name.to_owned());
    object
}
