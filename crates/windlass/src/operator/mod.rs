//! [`Operator`]: one value that says everything about an operator.
//!
//! From it come the running process ([`Operator::start`], [`main`](crate::main)), the custom
//! resource definitions, the role, and the manifests.

mod running;
mod task;

use std::future::Future;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass_manifests::Description;

pub use self::{running::Running, task::TaskContext};
use crate::{Controller, Environment, Grant, Kind, Result};

/// An operator: its controllers and background tasks under one name.
///
/// The name is the operator's field manager, the prefix of its role, and the name of its
/// deployment, so it should be a DNS label such as `memcached-operator`.
pub struct Operator {
    name: String,
}

impl Operator {
    /// An operator without controllers.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Adds a controller.
    #[must_use]
    pub fn controller<K: Kind, F>(self, controller: Controller<K, F>) -> Self {
        todo!()
    }

    /// Adds a background task: code that runs beside the controllers with access to the client
    /// itself, and with exactly the permissions granted. A task that fails is started again with
    /// backoff; one that returns `Ok` is done.
    #[must_use]
    pub fn task<F, Fut>(
        self,
        name: impl Into<String>,
        grants: impl IntoIterator<Item = Grant>,
        run: F,
    ) -> Self
    where
        F: Fn(TaskContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        todo!()
    }

    /// The operator's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definitions of the kinds this operator defines.
    pub fn crds(&self) -> Vec<CustomResourceDefinition> {
        todo!()
    }

    /// What the operator is, as plain facts: kinds, rules with their reasons, settings.
    pub fn description(&self) -> Description {
        todo!()
    }

    /// Starts caches, queues, controllers and tasks on the current tokio runtime.
    ///
    /// May be called again, for a second start after the first was stopped or dropped.
    pub fn start(&self, client: kube::Client, environment: Environment) -> Running {
        todo!()
    }
}
