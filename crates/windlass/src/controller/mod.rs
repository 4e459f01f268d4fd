//! Controllers: one per kind, made of parts that combine freely.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`Controller::of`], [`Controller::of_existing`] | the kind: the operator's own with its CRD, or one that is defined elsewhere |
//! | [`Controller::reads`] | what else it looks at |
//! | [`Controller::dependent`], [`Controller::template`] | objects that belong to the reconciled object, as functions of it ([`Dependent`]) or as YAML ([`Template`]) |
//! | [`Controller::reconciler`] | steps of its own with [handles](crate::handle): a [`Reconciler`], or a [`FinalizingReconciler`] if it has something to undo |
//! | [`Controller::status`] | the status, from what was [`Observed`] |
//!
//! One reconcile of one object answers the reads from the cache; runs dependents, templates and
//! reconcilers in the order in which they are written; if all of them completed, deletes what earlier
//! reconciles applied for the object and this one did not; and writes the status, with the conditions
//! Available, Progressing and Degraded if the kind has `conditions`. Requests are sent only for what
//! changes.
//!
//! A reconcile ends with an [`Action`] or with an [error](crate::error). It is
//! [cancelled](Controller::timeout) after a minute, and has to be safe to repeat from any point,
//! because the process may end anywhere. `docs/concepts/` in the repository explains controllers,
//! consistency, retries, ownership and permissions.

mod action;
mod any;
mod context;
mod dependent;
mod engine;
mod history;
mod observed;
mod parts;
mod reconciler;
mod repetitions;
mod session;
mod template;

use std::{marker::PhantomData, sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream::BoxStream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, core::DynamicObject};
use serde::Serialize;

pub use self::{
    action::Action,
    any::AnyController,
    context::Context,
    dependent::Dependent,
    observed::Observed,
    reconciler::{AnyReconciler, FinalizingReconciler, Reconciler},
    template::Template,
};
pub(crate) use self::{
    action::Step,
    any::Bound,
    history::History,
    observed::Source as ObservedFrom,
    repetitions::Repetitions,
    session::{Change, Session, Shared, decode, encode, key_of},
};
use self::{
    parts::{DependentPart, Part, ReadPart, ReconcilerPart, StagePart, StatusOf},
    template::TemplatePart,
};
use crate::{
    Declare, Key, Kind,
    declare::{Scope, Watch},
    definition::definition_of,
    kind::{KindInfo, Object},
    queue::Rate,
    watch::Predicate,
};

/// The controller of the objects of kind `K`: any of dependents, a reconciler, a status and what is
/// read, in any combination.
///
/// Reads are answered first; then dependents, templates and reconcilers run in the order in which
/// they are declared; then what is no longer applied is pruned, and the status is written.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use windlass::{Controller, Observed, Operator, Watched};
///
/// fn copy(secret: &Secret, observed: &Observed) -> Option<ConfigMap> {
///     let template = observed.read::<ConfigMap>().next()?;
///     # Some(template.clone())
///     // …
/// }
///
/// let controller = Controller::of_existing::<Secret>()
///     .reads(ConfigMap::referenced_by(|secret: &Secret| secret.metadata.name.clone()))
///     .dependent(copy)
///     .concurrency(4);
/// # Operator::new("copies").controller(controller).check().unwrap();
/// ```
pub struct Controller<K> {
    settings: Settings,
    only: Option<Predicate<K>>,
    matching: Option<Matching<K>>,
    parts: Vec<Box<dyn Part<K>>>,
    status: Option<StatusOf<K>>,
}

/// Which objects a controller is for.
pub(crate) type Matching<K> = Arc<dyn Fn(&K) -> bool + Send + Sync>;

/// What every controller has, whatever its parts.
#[derive(Clone)]
struct Settings {
    kind: KindInfo,
    name: String,
    /// The name its events carry, when it is not the operator's.
    reporter: Option<Arc<str>>,
    scope: Scope,
    concurrency: usize,
    timeout: Duration,
    crd: Option<CustomResourceDefinition>,
    /// Why the definition could not be made.
    flaw: Option<String>,
    resync: Option<Duration>,
    /// The finalizer's name, when it is not the operator's on the kind.
    finalizer: Option<String>,
    rate: Rate,
    sources: Vec<Source>,
    /// Whether an event is recorded for every owned object that is created, changed or deleted.
    records_events: bool,
}

/// Keys that come from outside the cluster.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) open: Arc<dyn Fn() -> BoxStream<'static, Key> + Send + Sync>,
}

impl Controller<()> {
    /// A controller of a kind that this operator defines: its CRD is part of the operator.
    ///
    /// If the kind's status has `conditions`, the framework keeps Available, Progressing and
    /// Degraded in it, also before the first status is written: give the other fields of the
    /// status a serde default.
    pub fn of<K: Kind + CustomResourceExt>() -> Controller<K> {
        let mut controller = Self::of_existing::<K>();
        match definition_of::<K>() {
            Ok(crd) => controller.settings.crd = Some(crd),
            Err(flaw) => controller.settings.flaw = Some(flaw),
        }
        controller
    }

    /// A controller of a kind that is defined elsewhere, such as Pod.
    pub fn of_existing<K: Kind>() -> Controller<K> {
        Self::with_settings(KindInfo::of::<K>())
    }

    /// A controller of a kind that is known only at run time, with reconcilers of
    /// [`DynamicObject`]s. Its CRD is part of the operator if it is [`defined_by`] the controller;
    /// if it is not, and the API server does not serve the kind yet, the controller waits for it.
    ///
    /// [`defined_by`]: Controller::defined_by
    ///
    /// ```
    /// use kube::core::DynamicObject;
    /// use windlass::{handle::Controlled, kind::KindInfo, prelude::*};
    ///
    /// struct Copies { children: Controlled<DynamicObject> }
    ///
    /// impl Reconciler for Copies {
    ///     type Object = DynamicObject;
    ///
    ///     async fn reconcile(&self, parent: &DynamicObject, ctx: &Context<DynamicObject>) -> Result<Action> {
    ///         # let _ = parent;
    ///         let children = self.children.list(ctx).await?;
    ///         # let _ = children;
    ///         Ok(Action::done())
    ///     }
    /// }
    ///
    /// // As a file might say it.
    /// let kind = |group: &str, kind: &str, plural: &str| KindInfo {
    ///     group: group.into(),
    ///     version: "v1".into(),
    ///     kind: kind.into(),
    ///     plural: plural.into(),
    ///     namespaced: true,
    /// };
    /// let controller = Controller::of_kind(kind("example.com", "Thing", "things"))
    ///     .reconciler(move |declare| Copies { children: declare.controls_kind(&kind("", "ConfigMap", "configmaps")) });
    /// let operator = Operator::new("copies").controller(controller);
    /// // The role follows from the data.
    /// assert!(operator.description().rules().any(|rule| rule.resource == "things"));
    /// ```
    pub fn of_kind(kind: KindInfo) -> Controller<DynamicObject> {
        Self::with_settings(kind)
    }

    fn with_settings<K: Object>(kind: KindInfo) -> Controller<K> {
        let settings = Settings {
            name: kind.kind.to_lowercase(),
            kind,
            reporter: None,
            scope: Scope::all(),
            concurrency: 10,
            timeout: Duration::from_mins(1),
            crd: None,
            flaw: None,
            resync: None,
            finalizer: None,
            rate: Rate::default(),
            sources: Vec::new(),
            records_events: false,
        };
        Controller {
            settings,
            only: None,
            matching: None,
            parts: Vec::new(),
            status: None,
        }
    }
}

impl Controller<DynamicObject> {
    /// The definition of the kind, for one that the operator itself defines.
    ///
    /// If the status has `conditions` in its schema, the framework keeps Available, Progressing and
    /// Degraded in it, as with [`Controller::of`].
    #[must_use]
    pub fn defined_by(mut self, crd: CustomResourceDefinition) -> Self {
        self.settings.crd = Some(windlass_manifests::definition::finish(crd));
        self
    }
}

impl<K: Kind> Controller<K> {
    /// Objects that belong to each `K`, as YAML documents with values of it: see [`Template`].
    #[must_use]
    pub fn template(mut self, mut template: Template<K>) -> Self {
        let flaws = std::mem::take(&mut template.flaws);
        if !flaws.is_empty() {
            let flaws = flaws.join("\n");
            self.settings.flaw = Some(match self.settings.flaw.take() {
                Some(flaw) => format!("{flaw}\n{flaws}"),
                None => flaws,
            });
        }
        self.part(TemplatePart(Arc::new(template)))
    }
}

impl<K: Object> Controller<K> {
    /// Objects that belong to each `K`, as a function of it and perhaps of what was observed:
    /// applied, owned, repaired when they drift, created again when they are deleted, pruned when
    /// they are no longer wanted. See [`Dependent`] for what the function may look like.
    #[must_use]
    pub fn dependent<M: 'static>(self, dependent: impl Dependent<K, M>) -> Self {
        self.part(DependentPart {
            dependent: Arc::new(dependent),
            marker: PhantomData,
        })
    }

    /// Objects of another kind that dependents and the status are computed from. The [`Watch`]
    /// says which of them, and for which objects their changes trigger a reconcile.
    #[must_use]
    pub fn reads<T: Kind>(self, watch: Watch<K, T>) -> Self {
        self.part(ReadPart(watch))
    }

    /// Steps of its own: a [`Reconciler`] or a [`FinalizingReconciler`], made from its handles by
    /// `declare`.
    #[must_use]
    pub fn reconciler<R, M: 'static>(
        self,
        declare: impl Fn(&mut Declare<K>) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: AnyReconciler<K, M>,
    {
        self.part(ReconcilerPart {
            declare,
            marker: PhantomData,
        })
    }

    /// The status, as a function of the object and of what was observed. It is the whole status,
    /// but for what the framework keeps in it: the conditions Available, Progressing and Degraded,
    /// and `observedGeneration`.
    #[must_use]
    pub fn status<S: Serialize>(
        mut self,
        status: impl Fn(&K, &Observed) -> S + Send + Sync + 'static,
    ) -> Self {
        let kind = self.settings.kind.clone();
        self.status = Some(Arc::new(move |object, observed| {
            encode(&kind, &status(object, observed))
        }));
        self
    }

    /// Records an event for every owned object that is created, changed or deleted: one more
    /// request each.
    #[must_use]
    pub fn record_events(mut self) -> Self {
        self.settings.records_events = true;
        self
    }

    fn part(mut self, part: impl Part<K> + 'static) -> Self {
        self.parts.push(Box::new(part));
        self
    }

    /// The controller's name in logs; by default the kind in lower case.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// The name under which the controller reports events; by default the operator's.
    #[must_use]
    pub fn reports_as(mut self, name: impl Into<Arc<str>>) -> Self {
        self.settings.reporter = Some(name.into());
        self
    }

    /// Only objects in this scope are reconciled.
    #[must_use]
    pub fn scoped(mut self, scope: Scope) -> Self {
        self.settings.scope = scope;
        self
    }

    /// How many objects are reconciled at once; 10 by default.
    #[must_use]
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.settings.concurrency = limit.max(1);
        self
    }

    /// How long one reconcile may take; one minute by default. After that it is cancelled: its
    /// future is dropped at the `.await` where it is, as if the process had been killed there, and
    /// the object is retried with backoff. A request that was sent may still take effect.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings.timeout = limit;
        self
    }

    /// The name of the finalizer that objects get if there is something to undo; by default the
    /// operator's name in the kind's group. For an operator that takes the place of another, and has
    /// to take over its finalizer.
    #[must_use]
    pub fn finalizer(mut self, name: impl Into<String>) -> Self {
        self.settings.finalizer = Some(name.into());
        self
    }

    /// Waits here until everything that was applied before this is ready: a Deployment when all its
    /// replicas are available, a Job when it is complete, a Pod when it is Ready, any other kind when
    /// it exists. What is declared after this is applied then, and nothing is pruned before.
    ///
    /// ```
    /// # use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::{ConfigMap, Pod}, batch::v1::Job};
    /// # use windlass::Controller;
    /// # fn database(map: &ConfigMap) -> StatefulSet { StatefulSet::default() }
    /// # fn migration(map: &ConfigMap) -> Job { Job::default() }
    /// # fn application(map: &ConfigMap) -> Pod { Pod::default() }
    /// Controller::of_existing::<ConfigMap>()
    ///     .dependent(database)
    ///     .when_ready()
    ///     .dependent(migration)
    ///     .when_ready()
    ///     .dependent(application);
    /// ```
    #[must_use]
    pub fn when_ready(self) -> Self {
        self.part(StagePart)
    }

    /// Only changes of the object itself that pass wake it; what it owns and reads still does.
    #[must_use]
    pub fn only(mut self, predicate: Predicate<K>) -> Self {
        self.only = Some(predicate);
        self
    }

    /// Only objects for which this holds are reconciled. One that has the controller's finalizer and
    /// does not match any more is cleaned up, as if it were being deleted, and loses the finalizer.
    ///
    /// Unlike a [scope](Self::scoped), this watches all objects: it is for controllers that have to
    /// see that an object matches no more, and for conditions that the API server cannot select by.
    #[must_use]
    pub fn matching(mut self, matching: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        self.matching = Some(Arc::new(matching));
        self
    }

    /// Reconciles every object again after this time, with a lower priority than changes. Off by
    /// default: what is watched needs no resync, what is outside the cluster may.
    #[must_use]
    pub fn resync(mut self, every: Duration) -> Self {
        self.settings.resync = Some(every);
        self
    }

    /// How fast failed objects are retried overall: so many a second after a burst; 10 after 100 by
    /// default. Each object has its own backoff besides.
    #[must_use]
    pub fn retry_rate(mut self, per_second: u32, burst: u32) -> Self {
        self.settings.rate = Rate {
            every: Duration::from_secs(1) / per_second.max(1),
            burst: burst.max(1),
        };
        self
    }

    /// Objects are also woken by something outside the cluster: `open` is called at every start
    /// and yields their keys, such as the receiving end of a channel.
    #[must_use]
    pub fn source<S>(
        mut self,
        name: impl Into<Arc<str>>,
        open: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self
    where
        S: Stream<Item = Key> + Send + 'static,
    {
        self.settings.sources.push(Source {
            name: name.into(),
            open: Arc::new(move || open().boxed()),
        });
        self
    }
}
