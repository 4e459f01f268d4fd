//! Windlass: the framework an operator author imports.
//!
//! **An operator is one value; everything else is derived from it.** A function returns an
//! [`Operator`]: its controllers, what each owns and reads, its background tasks. From that value
//! come the running process, the custom resource definitions, the least-privilege role, the
//! install manifests and the tests.
//!
//! A simple operator needs no reconcile function:
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Pod};
//! use kube::ResourceExt;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use windlass::{Controller, DependentExt, Observed, Operator, Watched};
//!
//! #[derive(kube::CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Page", namespaced, status = "PageStatus")]
//! struct PageSpec {
//!     text: String,
//!     published: bool,
//! }
//!
//! #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
//! struct PageStatus {
//!     #[serde(default)]
//!     readers: Vec<String>,
//! }
//!
//! fn content(page: &Page) -> ConfigMap {
//!     let mut map = ConfigMap::default();
//!     map.metadata.name = Some(page.name_any());
//!     map.data = Some([("text".to_owned(), page.spec.text.clone())].into());
//!     map
//! }
//!
//! fn status(_: &Page, observed: &Observed) -> PageStatus {
//!     PageStatus { readers: observed.all::<Pod>().map(ResourceExt::name_any).collect() }
//! }
//!
//! fn operator() -> Operator {
//!     Operator::new("pages").controller(
//!         Controller::of::<Page>()
//!             .dependent(content.when(|page| page.spec.published))
//!             .reads(Pod::selected_by(|page: &Page| page.metadata.labels.clone()))
//!             .status(status),
//!     )
//! }
//! # assert_eq!(operator().crds().len(), 1);
//! ```
//!
//! One with steps of its own is a [`Reconciler`]: a struct of handles made by a [`Declare`], which
//! are the only way to the API server. So the role that is derived from them is the true one.
//!
//! | to learn about | read |
//! | --- | --- |
//! | what runs and how it is started | [`Operator`], [`Running`], [`main`](fn@main) |
//! | controllers and their two forms | [`Controller`], [`Dependent`], [`Reconciler`], [`Cleanup`] |
//! | whom a change wakes | [`Watched`], [`Watch`], [`Scope`] |
//! | reading and writing | [`Owned`], [`Reads`], [`Writes`], [`Raw`], [`Context`] |
//! | defaults, judgement and conversion | [`Webhook`], [`Verdict`], [`Versions`] |
//! | what happens after a reconcile | [`Next`], [`Error`], [`Class`] |
//! | what a test replaces | [`Environment`], [`Clock`], [`Random`], [`Activity`] |

mod cache;
mod client;
mod conditions;
mod controller;
mod declare;
mod definition;
mod environment;
mod error;
mod event;
mod finalizer;
mod handle;
mod hash;
mod install;
mod key;
mod kind;
mod leader;
mod metrics;
mod operator;
mod program;
mod queue;
mod serve;
mod webhook;

pub use kube::core::{Expression, Selector};
pub use windlass_manifests as manifests;

pub use self::{
    controller::{
        AnyController, Cleanup, Context, Controller, Dependent, DependentExt, Dependents, Next,
        Observed, Reconciled, Reconciler, Undecided, When,
    },
    declare::{
        Access, Changed, Declare, Grant, IntoSelector, Predicate, Scope, Select, Verb, Watch,
        Watched,
    },
    definition::one_of,
    environment::{Activity, BusyGuard, Clock, DueGuard, Environment, Random},
    error::{Class, Error, Result},
    event::Event,
    handle::{Delete, Index, Owned, Raw, Reads, Watches, Writes},
    hash::{hash_of, name_within},
    install::install,
    key::{Key, Named, Names},
    kind::{Kind, KindInfo, KindScope, Object},
    leader::LeaderElection,
    metrics::Metrics,
    operator::{Debug, Launch, Operator, Running, TaskContext},
    program::main,
    serve::{Endpoint, Readers},
    webhook::{
        AnyWebhook, Certificates, DeclareWebhook, Defaulter, HostWebhooks, Lookup, Operation,
        Review, Validator, Verdict, Versions, Webhook, WebhookServer, WebhookServing,
    },
};
