//! What every operator of the benchmark is about: a [`Widget`] with one Deployment and a status.
//!
//! The operators themselves are the programs of this benchmark: `widgets-windlass` here, and its
//! peers in `bench/peers`. The program `bench-framework` starts one after the other on the same API
//! server and prints what each of them took.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::EnvVar};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::object;

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
    let labels = windlass::labels([
        ("app.kubernetes.io/name", "widget"),
        ("app.kubernetes.io/instance", name),
    ]);
    let env = (0..4).map(|nth| {
        object!(EnvVar {
            name: format!("WIDGET_OPTION_{nth}"),
            value: format!("value-{nth}"),
        })
    });
    object!(Deployment {
        metadata: { name, labels: labels.clone() },
        spec: {
            replicas,
            selector: { match_labels: labels.clone() },
            template: {
                metadata: { labels },
                spec: {
                    containers: [{
                        name: "widget",
                        image,
                        env: env.collect::<Vec<EnvVar>>(),
                        ports: [{ name: "http", container_port: 8080, protocol: "TCP" }],
                        resources: {
                            requests: { "cpu": "100m", "memory": "64Mi" },
                            limits: { "memory": "128Mi" },
                        },
                        readiness_probe: {
                            http_get: { path: "/ready", port: "http" },
                            period_seconds: 5,
                        },
                    }],
                },
            },
        },
    })
}
