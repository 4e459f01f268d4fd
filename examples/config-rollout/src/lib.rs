//! Pods are replaced when their configuration changes, also the part that comes from another object.
//!
//! An App is a Deployment and a `ConfigMap`. The map holds what the App says and what a second map
//! says that the App names. A hash of the result is an annotation of the pods, so a change of
//! either rolls the Deployment.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{hash_of, labels, object, prelude::*};

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "App",
    namespaced,
    status = "AppStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct AppSpec {
    /// The image that runs.
    pub image: String,
    /// The `ConfigMap` with the settings that all Apps share.
    pub shared_config: String,
    /// The log level of this App.
    pub log_level: String,
}

/// What runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AppStatus {
    /// How many pods are ready.
    pub ready: i32,
    /// Kept by the framework.
    pub conditions: Vec<Condition>,
}

/// The operator.
pub fn operator() -> Operator {
    Operator::new("config-rollout")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(
            Controller::of::<App>()
                .reads(ConfigMap::referenced_by(|app: &App| {
                    app.spec.shared_config.clone()
                }))
                .dependent(config)
                .dependent(deployment)
                .status(status),
        )
}

/// Waits for the shared settings; the pods that run keep running without them.
fn config(app: &App, observed: &Observed) -> Result<ConfigMap> {
    let shared = &app.spec.shared_config;
    let missing = || Error::waiting("ConfigMapNotFound", format!("configmap {shared} not found"));
    let shared: &ConfigMap = observed.get(shared).ok_or_else(missing)?;
    let mut data = shared.data.clone().unwrap_or_default();
    data.insert("logLevel".to_owned(), app.spec.log_level.clone());
    Ok(object!(ConfigMap { metadata: { name: name_of_config(app) }, data: data }))
}

fn name_of_config(app: &App) -> String {
    format!("{}-config", app.name_any())
}

fn deployment(app: &App, observed: &Observed) -> Result<Deployment> {
    let labels = labels([("app", app.name_any())]);
    let hash = hash_of(&config(app, observed)?.data);
    Ok(object!(Deployment {
        metadata: { name: app.name_any() },
        spec: {
            selector: { match_labels: labels.clone() },
            template: {
                metadata: { labels: labels, annotations: { "example.com/config": hash } },
                spec: {
                    containers: [{
                        name: "app",
                        image: &app.spec.image,
                        volume_mounts: [{ name: "config", mount_path: "/etc/app" }],
                    }],
                    volumes: [{ name: "config", config_map: { name: name_of_config(app) } }],
                },
            },
        },
    }))
}

fn status(_: &App, observed: &Observed) -> AppStatus {
    let deployment = observed.owned::<Deployment>().next();
    let ready = deployment.and_then(|deployment| deployment.status.as_ref()?.ready_replicas);
    AppStatus {
        ready: ready.unwrap_or(0),
        ..AppStatus::default()
    }
}
