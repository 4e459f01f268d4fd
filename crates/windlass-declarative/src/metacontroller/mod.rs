//! Metacontroller: controllers whose logic is a hook.
//!
//! The kinds, the JSON of the hooks and the behaviour are those of Metacontroller 4.17: an object of
//! kind [`CompositeController`] or [`DecoratorController`] names the kinds of parents and children and
//! a hook; the hook is sent a parent with its children and answers which children there should be.
//!
//! What is different:
//!
//! - A hook may be a program (`exec`) instead of a webhook.
//! - Children are written by server-side apply.
//! - A Secret or `ConfigMap` that a hook's configuration names, and the endpoints of its Service, are
//!   watched: when they change, all parents are synced again.
//! - A hook may answer with `events`: a list of `type`, `reason` and `message`.
//! - A controller has conditions that say whether it runs, and why not.
//!
//! ```
//! use windlass_declarative::metacontroller::{Options, operator};
//!
//! let operator = operator(Options::default());
//! let kinds: Vec<_> = operator.crds().iter().map(|crd| crd.spec.names.kind.clone()).collect();
//! assert_eq!(kinds, ["CompositeController", "ControllerRevision", "DecoratorController"]);
//! ```

mod answer;
mod composite;
mod configure;
mod controllers;
mod decorator;
mod exec;
mod files;
mod hook;
mod http;
mod kinds;
mod related;
mod request;
mod resolve;
mod revisions;
mod rollout;
mod transport;

use std::sync::Arc;

use windlass::{Controller, Operator};

pub use self::{
    files::{FilesError, operator_of_files},
    kinds::*,
    transport::{Answer, Call, Network, Target, Tls, Transport},
};

/// The version of Metacontroller whose behaviour this is.
const VERSION: &str = "4.17.2";

/// How hooks are called.
#[derive(Clone)]
pub struct Options {
    /// How they are reached.
    pub transport: Arc<dyn Transport>,
    /// Whether controllers that are objects in the cluster may have programs run. Who may create
    /// such an object may run programs as the operator then.
    pub exec: bool,
}

impl Default for Options {
    /// Over the network, and no programs.
    fn default() -> Self {
        Self {
            transport: Arc::new(Network::default()),
            exec: false,
        }
    }
}

/// The operator whose controllers are objects in the cluster.
pub fn operator(options: Options) -> Operator {
    let options = Arc::new(options);
    let of = Arc::clone(&options);
    let operator = Operator::new("metacontroller")
        .version(VERSION)
        .controller(
            Controller::of::<CompositeController>()
                .reconciler(move |declare| configure::Composites::declare(declare, &options)),
        )
        .controller(
            Controller::of::<DecoratorController>()
                .reconciler(move |declare| configure::Decorators::declare(declare, &of)),
        );
    match revisions::definition() {
        Ok(definition) => operator.definition(definition),
        Err(_) => operator,
    }
}
