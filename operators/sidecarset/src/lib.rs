//! `SidecarSets`: containers that are put into every pod a selector matches, and kept up to date there.
//!
//! | step | where |
//! | --- | --- |
//! | the kind, in the shape of that of `OpenKruise` | [`kind`] |
//! | rules and defaults of selectors, containers and volumes | [`schema`] |
//! | defaults that depend on other fields | [`defaults`] |
//! | what is wrong between fields and between sets | [`validation`], [`overlap`] |
//! | a new pod that matches gets the containers | [`injection`] |
//! | what was put into a pod is recorded on it | [`record`] |
//! | whether a pod really runs what it was sent, and is ready | [`readiness`] |
//! | which pods get a new image next | [`rollout`] |
//! | the controller that does it and counts | [`controller`] |
//! | the webhooks that call the pure functions | [`webhooks`] |
//!
//! Everything but the last two is pure functions.

mod controller;
mod defaults;
mod injection;
pub mod kind;
mod overlap;
mod readiness;
mod record;
mod rollout;
mod sample;
mod schema;
mod validation;
mod webhooks;

use windlass::{Controller, Operator};

pub use self::kind::{SidecarSet, SidecarSetSpec, SidecarSetStatus};
pub use self::record::{ANNOTATION, Former, Record, records_of};

/// Pods of these namespaces are never touched.
const IGNORED: [&str; 2] = ["kube-system", "kube-public"];

/// The operator's name; its own pods have it as a label.
const NAME: &str = "sidecarset-operator";

/// The operator.
pub fn operator() -> Operator {
    Operator::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .controller(Controller::of::<SidecarSet>().reconciler(controller::Rollout::declare))
        .webhook(webhooks::of_sets())
        .webhook(webhooks::of_pods())
        .sample(&sample::set())
        .sample(&sample::deployment())
}
