//! What every operator of the benchmark is about: a [`Widget`] with one Deployment and a status.
//!
//! The operators themselves are the programs of this benchmark: `widgets-windlass` here, and its
//! peers in `bench/peers`. The program `bench-framework` starts one after the other on the same API
//! server and prints what each of them took.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            Container, ContainerPort, EnvVar, HTTPGetAction, PodSpec, PodTemplateSpec, Probe,
            ResourceRequirements,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many objects are reconciled at once, by every operator.
pub const WORKERS: u16 = 8;

/// What is wanted.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bench.example.com",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus"
)]
pub struct WidgetSpec {
    /// How many pods.
    pub replicas: i32,
    /// What they run.
    pub image: String,
}

/// What is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WidgetStatus {
    /// The generation that the rest is about.
    #[serde(default)]
    pub observed_generation: i64,
    /// How many pods were asked for.
    #[serde(default)]
    pub replicas: i32,
    /// How many are ready.
    #[serde(default)]
    pub ready_replicas: i32,
}

/// The Deployment of a widget; the operator in Go makes the same.
pub fn deployment_for(widget: &Widget) -> Deployment {
    deployment(&widget.name_any(), widget.spec.replicas, &widget.spec.image)
}

/// The status of a widget whose Deployment has so many ready pods.
pub fn status_of(widget: &Widget, deployment: Option<&Deployment>) -> WidgetStatus {
    let ready = deployment.and_then(|one| one.status.as_ref()?.ready_replicas);
    WidgetStatus {
        observed_generation: widget.metadata.generation.unwrap_or_default(),
        replicas: widget.spec.replicas,
        ready_replicas: ready.unwrap_or_default(),
    }
}

/// A Deployment of about 2 KB, as operators make them.
pub fn deployment(name: &str, replicas: i32, image: &str) -> Deployment {
    let labels: BTreeMap<String, String> = [
        ("app.kubernetes.io/name", "widget"),
        ("app.kubernetes.io/instance", name),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    Deployment {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            replicas: Some(replicas),
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
                    containers: vec![container(image)],
                    ..PodSpec::default()
                }),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

fn container(image: &str) -> Container {
    let amounts = |of: &[(&str, &str)]| {
        let amounts = of.iter();
        amounts
            .map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned())))
            .collect()
    };
    let env = (0..4).map(|nth| EnvVar {
        name: format!("WIDGET_OPTION_{nth}"),
        value: Some(format!("value-{nth}")),
        ..EnvVar::default()
    });
    Container {
        name: "widget".to_owned(),
        image: Some(image.to_owned()),
        env: Some(env.collect()),
        ports: Some(vec![ContainerPort {
            name: Some("http".to_owned()),
            container_port: 8080,
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        resources: Some(ResourceRequirements {
            requests: Some(amounts(&[("cpu", "100m"), ("memory", "64Mi")])),
            limits: Some(amounts(&[("memory", "128Mi")])),
            ..ResourceRequirements::default()
        }),
        readiness_probe: Some(Probe {
            http_get: Some(HTTPGetAction {
                path: Some("/ready".to_owned()),
                port: IntOrString::String("http".to_owned()),
                ..HTTPGetAction::default()
            }),
            period_seconds: Some(5),
            ..Probe::default()
        }),
        ..Container::default()
    }
}
