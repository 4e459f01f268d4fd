//! [`Operator`]: one value that says everything about an operator.
//!
//! From it come the running process ([`Operator::start`], [`main`](crate::main)), the custom
//! resource definitions, the role, and the manifests.

mod choice;
mod debug;
mod kinds;
mod late;
mod rights;
mod running;
mod task;
#[cfg_attr(not(feature = "webhooks"), path = "without_webhooks.rs")]
mod webhooks;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::Arc,
};

use futures::FutureExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use tracing::warn;
use windlass_manifests::{Description, Part};

pub use self::{
    debug::DebugInfo,
    running::{Launch, Running},
    task::TaskContext,
};
pub(crate) use self::{
    late::{Late, LateController},
    running::{Apart, Signals},
};
use self::{task::Task, webhooks::Webhooks};
use crate::{
    Kind, Result, cache::Transform, controller::AnyController, handle::Access, helper::Help,
    kind::KindInfo, run::Metrics, testing::Environment,
};

/// The version of an operator that has none.
const UNVERSIONED: &str = "0.0.0";

/// An operator: its controllers and background tasks under one name.
///
/// The name is the operator's field manager, the name of its role, and the name of its
/// deployment, so it should be a DNS label such as `memcached-operator`.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use windlass::{Controller, Operator, object};
///
/// fn copy(secret: &Secret) -> ConfigMap {
///     object!(ConfigMap { metadata: { name: secret.metadata.name.clone() } })
/// }
///
/// let operator = Operator::new("copies")
///     .version(env!("CARGO_PKG_VERSION"))
///     .controller(Controller::of_existing::<Secret>().dependent(copy));
/// operator.check()?;
/// assert!(operator.description().rules().any(|rule| rule.resource == "configmaps"));
/// # Ok::<(), windlass::Error>(())
/// ```
pub struct Operator {
    name: Arc<str>,
    version: String,
    manager: Option<Arc<str>>,
    controllers: Vec<AnyController>,
    tasks: Vec<Arc<Task>>,
    samples: Vec<serde_json::Value>,
    definitions: Vec<CustomResourceDefinition>,
    transforms: BTreeMap<KindInfo, Transform>,
    metrics: Metrics,
    webhooks: Webhooks,
    pub(crate) helpers: BTreeMap<String, Help>,
    /// The names of the controllers that each program has.
    programs: BTreeMap<String, Vec<String>>,
}

impl Operator {
    /// An operator without controllers.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            version: UNVERSIONED.to_owned(),
            manager: None,
            controllers: Vec::new(),
            tasks: Vec::new(),
            samples: Vec::new(),
            definitions: Vec::new(),
            transforms: BTreeMap::new(),
            metrics: Metrics::default(),
            webhooks: Webhooks::default(),
            helpers: BTreeMap::new(),
            programs: BTreeMap::new(),
        }
    }

    /// The operator's own version, as in `.version(env!("CARGO_PKG_VERSION"))`: what `version`
    /// prints, and the tag of its image. 0.0.0 by default.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// The field manager of what it applies; by default the operator's name. For an operator that
    /// shares its objects with another program of that name.
    #[must_use]
    pub fn field_manager(mut self, name: impl Into<Arc<str>>) -> Self {
        self.manager = Some(name.into());
        self
    }

    /// Adds a controller.
    #[must_use]
    pub fn controller(mut self, controller: impl Into<AnyController>) -> Self {
        self.controllers.push(controller.into());
        self
    }

    /// Adds the definition of a kind that no controller of this operator reconciles, but that is a
    /// part of it: what it keeps records in, say.
    #[must_use]
    pub fn definition(mut self, crd: CustomResourceDefinition) -> Self {
        self.definitions
            .push(windlass_manifests::definition::finish(crd));
        self
    }

    /// Adds a background task: code that runs beside the controllers with access to the client
    /// itself, and with exactly the permissions granted. A task that fails is started again with
    /// backoff; one that returns `Ok` is done.
    #[must_use]
    pub fn task<F, Fut>(
        mut self,
        name: impl Into<String>,
        access: impl IntoIterator<Item = Access>,
        run: F,
    ) -> Self
    where
        F: Fn(TaskContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.tasks.push(Arc::new(Task {
            name: name.into(),
            access: access.into_iter().collect(),
            run: Box::new(move |ctx| run(ctx).boxed()),
        }));
        self
    }

    /// Reduces every object of a kind before it is kept in the cache, to save memory: whoever reads
    /// it sees what is left. Leave alone what the operator applies itself, or every apply looks
    /// like a change. `managedFields` are not shown to it: they are never kept in the object.
    #[must_use]
    pub fn transform<K: Kind>(
        mut self,
        transform: impl Fn(&mut serde_json::Value) + Send + Sync + 'static,
    ) -> Self {
        self.transforms
            .insert(KindInfo::of::<K>(), Arc::new(transform));
        self
    }

    /// What somebody who runs the operator should know: watches that keep more in memory than
    /// they should.
    pub fn warnings(&self) -> Vec<String> {
        let parts = self.controllers.iter().map(AnyController::describe);
        let watched = parts.flat_map(|part| {
            let unlimited = part.watches.iter().filter(|watch| watch.scope.is_none());
            unlimited.map(|watch| (part.name.as_str(), watch.resource.as_str()))
        });
        let secrets = watched.filter(|(_, resource)| *resource == "secrets");
        let controllers: BTreeSet<&str> = secrets.map(|(name, _)| name).collect();
        controllers
            .into_iter()
            .map(|name| {
                format!(
                    "{name} watches every secret of the cluster: the cache holds them all, and \
                     the role may read them all; give the watch a scope"
                )
            })
            .collect()
    }

    /// The operator's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definitions of the kinds this operator defines, in the order of their names.
    pub fn crds(&self) -> Vec<CustomResourceDefinition> {
        let crds = self.controllers.iter().filter_map(AnyController::crd);
        let mut by_name: BTreeMap<String, CustomResourceDefinition> =
            crds.map(|crd| (crd.name_any(), crd.clone())).collect();
        let others = self.definitions.iter();
        by_name.extend(others.map(|crd| (crd.name_any(), crd.clone())));
        by_name.extend(self.webhooks.crds(&self.name));
        by_name.into_values().collect()
    }

    /// What the operator is, as plain facts: kinds, rules with their reasons.
    pub fn description(&self) -> Description {
        let tasks = self.tasks.iter().map(|task| Part {
            name: task.name.clone(),
            purpose: "background task with raw client access".to_owned(),
            watches: Vec::new(),
            rules: task
                .access
                .iter()
                .flat_map(|access| access.grants(None))
                .map(|grant| grant.rule("raw client access"))
                .collect(),
        });
        let mut description = Description {
            name: self.name.to_string(),
            version: self.version.clone(),
            crds: self.crds(),
            controllers: self
                .controllers
                .iter()
                .map(|controller| controller.describe().clone())
                .collect(),
            tasks: tasks.collect(),
            webhooks: Vec::new(),
            conversions: Vec::new(),
            serving: None,
            samples: self.samples.clone(),
            flaws: self.flaws(),
        };
        self.webhooks.describe(&mut description);
        description
    }

    /// What it counts, over all its starts in this process.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Starts caches, queues, controllers and tasks on the current tokio runtime, alone: without
    /// an election.
    ///
    /// May be called again, for a second start after the first was stopped or dropped.
    pub fn start(&self, client: kube::Client, environment: Environment) -> Running {
        self.launch(client, environment, Launch::default())
    }

    /// As [`start`](Self::start), with a say in how.
    pub fn launch(
        &self,
        client: kube::Client,
        environment: Environment,
        launch: Launch,
    ) -> Running {
        self.launch_beside(client, environment, launch, None)
    }

    /// As [`launch`](Self::launch), with the election apart from everything else.
    pub(crate) fn launch_beside(
        &self,
        client: kube::Client,
        environment: Environment,
        launch: Launch,
        apart: Option<Apart>,
    ) -> Running {
        for warning in self.warnings() {
            warn!(operator = %self.name, "{warning}");
        }
        Running::start(self, client, environment, launch, apart)
    }
}
