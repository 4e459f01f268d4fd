//! Kubernetes' own sample-controller, on Windlass: a Foo is a Deployment whose name it chooses.
//!
//! The second tutorial: what happens when the name is taken. A Deployment that the Foo does not
//! control is never taken over; the event `ErrResourceExists` and the condition Degraded say so,
//! and the Foo goes on by itself when the name is free.

#![allow(
    clippy::disallowed_names,
    reason = "the kind of Kubernetes' example is called Foo"
)]

use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{
    Context, Controller, Declare, Delete, Error, Event, Next, Operator, Owned, Reconciler, Result,
};

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    namespaced,
    status = "FooStatus",
    // Groups of k8s.io are Kubernetes' own: the API server refuses one that does not say this.
    annotation(
        "api-approved.kubernetes.io",
        "unapproved, experimental-only; it is the example of Kubernetes' own documentation"
    ),
    printcolumn = r#"{"name":"Deployment","type":"string","jsonPath":".spec.deploymentName"}"#,
    printcolumn = r#"{"name":"Available","type":"integer","jsonPath":".status.availableReplicas"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
pub struct FooSpec {
    /// The name of the Deployment.
    #[schemars(length(min = 1))]
    pub deployment_name: String,
    /// How many pods it has.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: i32,
}

fn one() -> i32 {
    1
}

/// What runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FooStatus {
    /// How many pods are available.
    pub available_replicas: i32,
    /// Available, Progressing and Degraded, kept by the framework.
    pub conditions: Vec<Condition>,
}

/// The operator.
pub fn operator() -> Operator {
    let foo = FooSpec {
        deployment_name: "example-foo".to_owned(),
        replicas: 1,
    };
    Operator::new("sample-controller")
        .controller(Controller::of::<Foo>().reconciler(FooReconciler::declare))
        .sample(&Foo::new("example-foo", foo))
}

struct FooReconciler {
    deployments: Owned<Deployment>,
}

impl FooReconciler {
    fn declare(declare: &mut Declare<Foo>) -> Self {
        Self {
            deployments: declare.applies(),
        }
    }
}

impl Reconciler for FooReconciler {
    type Object = Foo;

    async fn reconcile(&self, foo: &Foo, ctx: &Context<Foo>) -> Result<Next> {
        let name = &foo.spec.deployment_name;
        let wanted = deployment_for(foo).map_err(Error::other)?;
        let applied = self.deployments.apply(ctx, wanted).await;
        if let Err(Error::NotOurs { .. }) = applied {
            let note = format!("deployment {name} already exists and is not managed by this Foo");
            ctx.event(Event::warning("ErrResourceExists", note));
        }
        let deployment = applied?;
        // Under another name now: the one of before goes.
        for old in self.deployments.list(ctx).await? {
            if old.name_any() != *name {
                self.deployments
                    .delete(ctx, &old, Delete::background())
                    .await?;
            }
        }
        let available = deployment
            .status
            .and_then(|status| status.available_replicas);
        ctx.status(FooStatus {
            available_replicas: available.unwrap_or(0),
            ..FooStatus::default()
        })
        .await?;
        Ok(Next::settled())
    }
}

fn deployment_for(foo: &Foo) -> serde_json::Result<Deployment> {
    let labels = json!({ "app": "memcached", "controller": foo.name_any() });
    serde_json::from_value(json!({
        "metadata": { "name": foo.spec.deployment_name, "labels": labels },
        "spec": {
            "replicas": foo.spec.replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "memcached", "image": "memcached:1.6.6" }] },
            },
        },
    }))
}
