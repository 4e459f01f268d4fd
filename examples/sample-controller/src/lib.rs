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
use windlass::{
    Action, Context, Controller, Declare, Error, Event, Operator, Reconciler, Result,
    handle::Owned, labels, object,
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
        .version(env!("CARGO_PKG_VERSION"))
        .controller(Controller::of::<Foo>().reconciler(FooReconciler::declare))
        .sample(&Foo::new("example-foo", foo))
}

struct FooReconciler {
    deployments: Owned<Deployment>,
}

impl FooReconciler {
    fn declare(declare: &mut Declare<Foo>) -> Self {
        Self {
            deployments: declare.owns(),
        }
    }
}

impl Reconciler for FooReconciler {
    type Object = Foo;

    async fn reconcile(&self, foo: &Foo, ctx: &Context<Foo>) -> Result<Action> {
        // Under another name than before: the old one is not applied any more, and so pruned.
        let applied = self.deployments.apply(ctx, deployment(foo)).await;
        if let Err(Error::NotOurs { .. }) = applied {
            let name = &foo.spec.deployment_name;
            let note = format!("deployment {name} already exists and is not managed by this Foo");
            ctx.event(Event::warning("ErrResourceExists", note));
        }
        let status = applied?.status.clone().unwrap_or_default();
        ctx.set_status(FooStatus {
            available_replicas: status.available_replicas.unwrap_or(0),
            ..FooStatus::default()
        })?;
        Ok(Action::done())
    }
}

fn deployment(foo: &Foo) -> Deployment {
    let labels = labels([("app", "memcached"), ("controller", &foo.name_any())]);
    object!(Deployment {
        metadata: { name: &foo.spec.deployment_name, labels: labels.clone() },
        spec: {
            replicas: foo.spec.replicas,
            selector: { match_labels: labels.clone() },
            template: {
                metadata: { labels: labels },
                spec: { containers: [{ name: "memcached", image: "memcached:1.6.6" }] },
            },
        },
    })
}
