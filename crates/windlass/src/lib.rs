//! Windlass: write a Kubernetes operator as one value.
//!
//! A function returns an [`Operator`]: its controllers, what each owns and reads, its webhooks, its
//! background tasks. From that value come the running process, the custom resource definitions, the
//! least-privilege role, the install manifests and the tests. This page makes one, step by step; the
//! book in `docs/` goes on from there to production.
//!
//! # A kind
//! A kind is a struct with [`kube::CustomResource`]. Doc comments become descriptions, `schemars`
//! attributes become rules that the API server checks. `conditions` in a status are kept by the
//! framework: Available, Progressing and Degraded.
//!
//! ```
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! /// A published text.
//! #[derive(kube::CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Page", namespaced, status = "PageStatus")]
//! struct PageSpec {
//!     /// The text.
//!     #[schemars(length(min = 1))]
//!     text: String,
//!     /// Whether it can be read.
//!     #[serde(default)]
//!     published: bool,
//! }
//!
//! #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
//! #[serde(default)]
//! struct PageStatus {
//!     readers: Vec<String>,
//!     conditions: Vec<Condition>,
//! }
//! ```
//!
//! # What belongs to it
//! A simple operator needs no reconcile function. What belongs to a page is a function of the page;
//! its status is a function of the page and of what was observed:
//!
//! ```
//! # use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! # #[derive(kube::CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! # #[kube(group = "example.com", version = "v1", kind = "Page", namespaced, status = "PageStatus")]
//! # struct PageSpec { text: String, #[serde(default)] published: bool }
//! # #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
//! # struct PageStatus { #[serde(default)] readers: Vec<String>, #[serde(default)] conditions: Vec<Condition> }
//! use k8s_openapi::api::core::v1::{ConfigMap, Pod};
//! use kube::ResourceExt;
//! use windlass::{Controller, Observed, Operator, Watched, object};
//!
//! fn content(page: &Page) -> Option<ConfigMap> {
//!     page.spec.published.then(|| {
//!         object!(ConfigMap {
//!             metadata: { name: page.name_any() },
//!             data: { "text": &page.spec.text },
//!         })
//!     })
//! }
//!
//! fn status(_: &Page, observed: &Observed) -> PageStatus {
//!     let readers = observed.read::<Pod>().map(ResourceExt::name_any);
//!     PageStatus { readers: readers.collect(), ..PageStatus::default() }
//! }
//!
//! fn operator() -> Operator {
//!     Operator::new("pages").controller(
//!         Controller::of::<Page>()
//!             .reads(Pod::selected_by(|page: &Page| page.metadata.labels.clone()))
//!             .dependent(content)
//!             .status(status),
//!     )
//! }
//!
//! // The definition, and exactly the rights it takes, follow.
//! assert_eq!(operator().crds()[0].spec.names.kind, "Page");
//! let description = operator().description();
//! let pods = description.rules().find(|rule| rule.resource == "pods").unwrap();
//! assert_eq!(Vec::from_iter(&pods.verbs), ["list", "watch"]);
//! ```
//!
//! The map is applied, owned, repaired when somebody changes it, created again when somebody deletes
//! it, and pruned when the page is no longer published. Nothing is sent if nothing would change.
//!
//! # A program
//! ```no_run
//! # fn operator() -> windlass::Operator { windlass::Operator::new("pages") }
//! # #[cfg(not(feature = "cli"))] fn main() {}
//! # #[cfg(feature = "cli")]
//! windlass::main!(operator);
//! ```
//!
//! has the commands `run` (with `--dry-run`), `install`, `uninstall`, `manifests`, `rbac`, `explain`
//! and `version`.
//!
//! # Steps of its own
//! Where functions are not enough there is a [`Reconciler`]: a struct of [handles](handle) made by a
//! [`Declare`], which are the only way to the API server. So the role that is derived from them is
//! exact. Reads come from the cache and see what was written before. One that has something to undo
//! is a [`FinalizingReconciler`]: the type alone decides that objects get a finalizer.
//!
//! ```
//! # use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! # #[derive(kube::CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! # #[kube(group = "example.com", version = "v1", kind = "Page", namespaced, status = "PageStatus")]
//! # struct PageSpec { text: String, #[serde(default)] published: bool }
//! # #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
//! # struct PageStatus { #[serde(default)] readers: Vec<String>, #[serde(default)] conditions: Vec<Condition> }
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kube::ResourceExt;
//! use windlass::{Event, FinalizingReconciler, handle::{Owned, Reads}, object, prelude::*};
//!
//! struct Publisher {
//!     maps: Owned<ConfigMap>,
//!     keys: Reads<Secret>,
//! }
//!
//! impl Publisher {
//!     fn declare(declare: &mut Declare<Page>) -> Self {
//!         Self {
//!             maps: declare.owns(),
//!             // A page is reconciled when the secret of its name changes, or appears.
//!             keys: declare.reads(Secret::referenced_by(|page: &Page| page.metadata.name.clone())),
//!         }
//!     }
//! }
//!
//! impl FinalizingReconciler for Publisher {
//!     type Object = Page;
//!
//!     async fn reconcile(&self, page: &Page, ctx: &Context<Page>) -> Result<Action> {
//!         let Some(key) = self.keys.get(ctx, ctx.key()).await? else {
//!             return Ok(Action::waiting("SecretNotFound", "there is no secret to sign with"));
//!         };
//!         let map = object!(ConfigMap {
//!             metadata: { name: page.name_any() },
//!             data: { "signed-by": key.name_any() },
//!         });
//!         self.maps.apply(ctx, map).await?;
//!         Ok(Action::done())
//!     }
//!
//!     async fn cleanup(&self, page: &Page, ctx: &Context<Page>) -> Result<Action> {
//!         ctx.event(Event::normal("Withdrawn", page.name_any()));
//!         Ok(Action::done())
//!     }
//! }
//!
//! let operator = Operator::new("pages")
//!     .version(env!("CARGO_PKG_VERSION"))
//!     .controller(Controller::of::<Page>().reconciler(Publisher::declare));
//! # operator.check().unwrap();
//! ```
//!
//! # A test
//! `windlass-cluster` gives each test a cluster in the same process, with virtual time; its page
//! shows one.
//!
//! # Features
//! The first four are on unless a `Cargo.toml` says `default-features = false`; what is off
//! is not compiled, and neither are its dependencies.
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `webhooks` | `webhook`, `Operator::webhook` and `Operator::versions` |
//! | `cli` | `main!`, the program of an operator, with its log; and `serve` |
//! | `metrics` | metrics as text, under the names of controller-runtime |
//! | `allocator` | `run::Allocator`, which the program has then |
//! | `serve` | `run::Endpoint`: probes, metrics and the debug page over HTTP |
//! | `otel` | traces of OpenTelemetry: a span for each reconcile, linked to those that caused it, and for each request; `run` exports them when `OTEL_EXPORTER_OTLP_ENDPOINT` is set |
//!
//! # Where to read on
//! | to learn about | read |
//! | --- | --- |
//! | the parts of a controller and the order they run in | [`Controller`], [`controller`] |
//! | reading and writing | [`handle`], [`Context`] |
//! | what a change triggers | [`watch`], [`Watched`] |
//! | defaulting, validation and conversion | [`webhook`], [`Webhook`] |
//! | what happens after a reconcile | [`Action`], [`Error`], [`error`] |
//! | starting an operator | [`main!`], [`run`] |
//! | kinds, also those known at run time only | [`kind`] |
//! | what a test replaces | [`testing`] |

mod cache;
mod client;
mod conditions;
pub mod controller;
mod declare;
mod definition;
mod environment;
pub mod error;
mod event;
mod finalizer;
pub mod handle;
mod hash;
mod helper;
mod install;
mod key;
pub mod kind;
mod leader;
#[cfg(any(feature = "serve", feature = "webhooks"))]
mod listen;
mod metrics;
mod object;
mod operator;
pub mod prelude;
#[cfg(feature = "cli")]
mod program;
mod queue;
pub mod run;
#[cfg(feature = "serve")]
mod serve;
#[cfg_attr(not(feature = "otel"), path = "telemetry/off.rs")]
mod telemetry;
pub mod testing;
pub mod watch;
#[cfg(feature = "webhooks")]
pub mod webhook;

/// What the code of [`object!`] calls.
#[doc(hidden)]
pub mod __object {
    pub use crate::object::{At, IntoField, Plain, pushed};
}

pub use windlass_manifests as manifests;

#[cfg(feature = "cli")]
pub use self::program::main;
#[cfg(feature = "webhooks")]
pub use self::webhook::Webhook;
pub use self::{
    controller::{Action, Context, Controller, FinalizingReconciler, Observed, Reconciler},
    declare::{Declare, Watched},
    error::{Error, Result},
    event::Event,
    hash::{hash_of, name_within},
    key::Key,
    kind::Kind,
    object::labels,
    operator::Operator,
};
