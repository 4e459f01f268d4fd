//! Windlass: the framework an operator author imports.
//!
//! **An operator is one value; everything else is derived from it.** A function returns an
//! [`Operator`]: its controllers, what each owns and reads, its background tasks. From that value
//! come the running process, the custom resource definitions, the least-privilege role, the
//! install manifests and the tests.

mod cache;
mod client;
mod conditions;
mod controller;
mod declare;
mod environment;
mod error;
mod event;
mod finalizer;
mod handle;
mod key;
mod kind;
mod operator;
mod program;
mod queue;

pub use kube::core::{Expression, Selector};
pub use windlass_manifests as manifests;

pub use self::{
    controller::{
        AnyController, Cleanup, Context, Controller, Dependent, DependentExt, Dependents, Next,
        Observed, Reconciled, Reconciler, Undecided, When,
    },
    declare::{Access, Declare, Grant, IntoSelector, Scope, Select, Verb, Watch, Watched},
    environment::{Activity, BusyGuard, Clock, DueGuard, Environment, Random},
    error::{Class, Error, Result},
    event::Event,
    handle::{Delete, Owned, Raw, Reads, Writes},
    key::{Key, Named, Names},
    kind::{Kind, KindInfo, KindScope},
    operator::{Operator, Running, TaskContext},
    program::main,
};
