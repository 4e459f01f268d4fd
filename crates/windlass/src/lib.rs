//! Windlass: the framework an operator author imports.
//!
//! **An operator is one value; everything else is derived from it.** A function returns an
//! [`Operator`]: its controllers, what each owns and reads, its webhooks, its background tasks. From
//! that value come the running process, the custom resource definitions, the least-privilege role,
//! the install manifests and the tests. This page makes one, step by step; `docs/guide.md` goes on
//! from there to production, and `docs/coming-from.md` is for those who know kubebuilder or kube-rs.
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
//! /// A text, published.
//! #[derive(kube::CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Page", namespaced, status = "PageStatus")]
//! struct PageSpec {
//!     /// What it says.
//!     #[schemars(length(min = 1))]
//!     text: String,
//!     /// Whether anybody may read it.
//!     #[serde(default)]
//!     published: bool,
//! }
//!
//! #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
//! struct PageStatus {
//!     #[serde(default)]
//!     readers: Vec<String>,
//!     #[serde(default)]
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
//! use windlass::{Controller, DependentExt, Observed, Operator, Watched};
//!
//! fn content(page: &Page) -> ConfigMap {
//!     let mut map = ConfigMap::default();
//!     map.metadata.name = Some(page.name_any());
//!     map.data = Some([("text".to_owned(), page.spec.text.clone())].into());
//!     map
//! }
//!
//! fn status(_: &Page, observed: &Observed) -> PageStatus {
//!     let readers = observed.all::<Pod>().map(ResourceExt::name_any);
//!     PageStatus { readers: readers.collect(), ..PageStatus::default() }
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
//!
//! // The definition, and exactly the rights it takes, follow.
//! assert_eq!(operator().crds()[0].spec.names.kind, "Page");
//! let description = operator().description();
//! let pods = description.rules().find(|rule| rule.resource == "pods").unwrap();
//! assert_eq!(Vec::from_iter(&pods.verbs), ["list", "watch"]);
//! ```
//!
//! The map is applied, owned, repaired when somebody changes it, made again when somebody deletes
//! it, and deleted when the page is no longer published. Nothing is sent when nothing would change.
//!
//! # A program
//! ```no_run
//! # fn operator() -> windlass::Operator { windlass::Operator::new("pages") }
//! fn main() -> std::process::ExitCode {
//!     windlass::main(operator)
//! }
//! ```
//!
//! has the commands `run` (with `--dry-run`), `install`, `uninstall`, `manifests`, `rbac`, `explain`
//! and `version`.
//!
//! # Steps of its own
//! Where functions are not enough there is a [`Reconciler`]: a struct of handles made by a
//! [`Declare`], which are the only way to the API server. So the role that is derived from them is
//! the true one. Reads come from the cache and see what was written before.
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
//! use windlass::{Cleanup, Context, Controller, Declare, Action, Operator, Owned, Reads, Reconciler, Result, Watched};
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
//!             // A page is woken when the secret of its name changes, or appears.
//!             keys: declare.reads(Secret::referenced_by(|page: &Page| page.metadata.name.clone())),
//!         }
//!     }
//! }
//!
//! impl Reconciler for Publisher {
//!     type Object = Page;
//!
//!     async fn reconcile(&self, page: &Page, ctx: &Context<Page>) -> Result<Action> {
//!         let Some(key) = self.keys.get(ctx, ctx.key()).await? else {
//!             return Ok(Action::waiting("NoKey", "there is no secret to sign with"));
//!         };
//!         let mut map = ConfigMap::default();
//!         map.metadata.name = Some(page.name_any());
//!         map.data = Some([("signed-by".to_owned(), key.name_any())].into());
//!         self.maps.apply(ctx, map).await?;
//!         Ok(Action::done())
//!     }
//! }
//!
//! /// What happens before a page may go; the finalizer is there exactly because of this.
//! impl Cleanup for Publisher {
//!     async fn cleanup(&self, page: &Page, ctx: &Context<Page>) -> Result<Action> {
//!         ctx.event(windlass::Event::normal("Withdrawn", page.name_any()));
//!         Ok(Action::done())
//!     }
//! }
//!
//! let operator = Operator::new("pages")
//!     .controller(Controller::of::<Page>().reconciler_with_cleanup(Publisher::declare));
//! # operator.check().unwrap();
//! ```
//!
//! # A test
//! `windlass-cluster` gives each test a cluster in the same process, with virtual time; its page
//! shows one.
//!
//! # Where to read on
//! | to learn about | read |
//! | --- | --- |
//! | what runs and how it is started | [`Operator`], [`Running`], [`main`](fn@main) |
//! | controllers and their two forms | [`Controller`], [`Dependent`], [`Template`], [`Reconciler`], [`Cleanup`] |
//! | whom a change wakes | [`Watched`], [`Watch`], [`Scope`] |
//! | reading and writing | [`Owned`], [`Reads`], [`Writes`], [`Live`], [`Raw`], [`Context`] |
//! | defaults, judgement and conversion | [`Webhook`], [`Verdict`], [`Versions`] |
//! | what happens after a reconcile | [`Action`], [`Error`], [`Class`] |
//! | what a test replaces | [`Environment`], [`Clock`], [`Random`], [`Activity`] |

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
mod install;
mod key;
pub mod kind;
mod leader;
mod metrics;
mod object;
mod operator;
pub mod prelude;
mod program;
mod queue;
pub mod run;
mod serve;
pub mod testing;
pub mod watch;
pub mod webhook;

/// What the code of [`object!`] calls.
#[doc(hidden)]
pub mod __object {
    pub use crate::object::{At, IntoField, Plain, pushed};
}

pub use windlass_manifests as manifests;

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
    program::main,
    webhook::Webhook,
};
