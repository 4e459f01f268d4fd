//! Controllers: one per kind, in one of two forms.
//!
//! The short form has no reconcile function: [`dependents`](Controller::dependent) are pure
//! functions of the object, [`status`](Controller::status) is a pure function of the object and
//! what was [`Observed`]. The long form is a [`Reconciler`].

mod any;
mod context;
mod dependent;
mod dependents;
mod engine;
mod history;
mod next;
mod observed;
mod reconciler;
mod repetitions;
mod session;
mod steps;
mod template;

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream::BoxStream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde::Serialize;

pub use self::{
    any::AnyController,
    context::Context,
    dependent::{Dependent, DependentExt, When},
    dependents::Dependents,
    next::Next,
    observed::Observed,
    reconciler::{Cleanup, Reconciler},
    template::Template,
};
use self::{
    dependents::{DependentPart, Part, ReadPart},
    steps::{Plain, Steps, WithCleanup},
    template::TemplatePart,
};
pub(crate) use self::{
    history::History,
    next::Step,
    repetitions::Repetitions,
    session::{Session, Shared, decode, encode, key_of},
};
use crate::{
    Declare, Key, Kind, KindInfo, Predicate,
    declare::{Scope, Watch},
    definition::definition_of,
    queue::Rate,
};

/// The form of a controller that has not been given one yet.
#[derive(Debug)]
pub struct Undecided;

/// The long form: a reconciler.
pub struct Reconciled<K> {
    declare: DeclareSteps<K>,
    cleanup: bool,
}

type DeclareSteps<K> = Box<dyn Fn(&mut Declare<K>) -> Box<dyn Steps<K>> + Send + Sync>;

/// The controller of the objects of kind `K`.
pub struct Controller<K, F = Undecided> {
    settings: Settings,
    only: Option<Predicate<K>>,
    form: F,
}

/// What every controller has, whatever its form.
#[derive(Clone)]
struct Settings {
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
    rate: Rate,
    sources: Vec<Source>,
}

/// Keys that come from outside the cluster.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) open: Arc<dyn Fn() -> BoxStream<'static, Key> + Send + Sync>,
}

impl Controller<Undecided> {
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
        let settings = Settings {
            name: KindInfo::of::<K>().kind.to_lowercase(),
            reporter: None,
            scope: Scope::all(),
            concurrency: 10,
            timeout: Duration::from_mins(1),
            crd: None,
            flaw: None,
            resync: None,
            rate: Rate::default(),
            sources: Vec::new(),
        };
        Controller {
            settings,
            only: None,
            form: Undecided,
        }
    }
}

impl<K: Kind> Controller<K> {
    /// Gives the controller steps of its own. `declare` makes the reconciler from its handles.
    pub fn reconciler<R>(
        self,
        declare: impl Fn(&mut Declare<K>) -> R + Send + Sync + 'static,
    ) -> Controller<K, Reconciled<K>>
    where
        R: Reconciler<Object = K>,
    {
        self.with_form(Reconciled {
            declare: Box::new(move |handles| Box::new(Plain(declare(handles)))),
            cleanup: false,
        })
    }

    /// Gives the controller steps of its own, and a finalizer on every object for the cleanup.
    pub fn reconciler_with_cleanup<R>(
        self,
        declare: impl Fn(&mut Declare<K>) -> R + Send + Sync + 'static,
    ) -> Controller<K, Reconciled<K>>
    where
        R: Cleanup<Object = K>,
    {
        self.with_form(Reconciled {
            declare: Box::new(move |handles| Box::new(WithCleanup(declare(handles)))),
            cleanup: true,
        })
    }
}

impl<K: Kind, F> Controller<K, F> {
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

    /// How many objects are reconciled at once; 10 unless told.
    #[must_use]
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.settings.concurrency = limit.max(1);
        self
    }

    /// How long one reconcile may take; a minute unless told.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.settings.timeout = limit;
        self
    }

    /// Only changes of the object itself that pass wake it; what it owns and reads still does.
    #[must_use]
    pub fn only(mut self, predicate: Predicate<K>) -> Self {
        self.only = Some(predicate);
        self
    }

    /// Every object is looked at again after this time, behind everything that changed. Off unless
    /// told: what is watched needs no second look, what is outside the cluster may.
    #[must_use]
    pub fn resync(mut self, every: Duration) -> Self {
        self.settings.resync = Some(every);
        self
    }

    /// How fast failed objects are tried again all together: so many a second after so many at
    /// once; 10 after 100 unless told. Each has its own backoff besides.
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

    fn with_form<G>(self, form: G) -> Controller<K, G> {
        Controller {
            settings: self.settings,
            only: self.only,
            form,
        }
    }
}

impl<K: Kind, F: Into<Dependents<K>>> Controller<K, F> {
    /// An object that belongs to each `K`, as a function of it: applied, owned, repaired when it
    /// drifts, created again when it is deleted, deleted when it is not wanted any more. With
    /// [`when`](DependentExt::when) it is wanted only under a condition.
    pub fn dependent(self, dependent: impl Dependent<K> + 'static) -> Controller<K, Dependents<K>> {
        self.with_part(DependentPart(Arc::new(dependent)))
    }

    /// Objects that belong to each `K`, as YAML documents with values of it: see [`Template`].
    pub fn template(mut self, mut template: Template<K>) -> Controller<K, Dependents<K>> {
        let flaws = std::mem::take(&mut template.flaws);
        if !flaws.is_empty() {
            let flaws = flaws.join("\n");
            self.settings.flaw = Some(match self.settings.flaw.take() {
                Some(flaw) => format!("{flaw}\n{flaws}"),
                None => flaws,
            });
        }
        self.with_part(TemplatePart(Arc::new(template)))
    }

    /// Objects of another kind that the status is computed from.
    pub fn reads<T: Kind>(self, watch: Watch<K, T>) -> Controller<K, Dependents<K>> {
        self.with_part(ReadPart(watch))
    }

    /// The status, as a function of the object and of what was observed.
    pub fn status<S: Serialize>(
        self,
        status: impl Fn(&K, &Observed) -> S + Send + Sync + 'static,
    ) -> Controller<K, Dependents<K>> {
        let mut controller = self.decided();
        controller.form.status = Some(Arc::new(move |object, observed| {
            encode(&KindInfo::of::<K>(), &status(object, observed))
        }));
        controller
    }

    /// An event tells of every dependent that is created, changed or deleted: one more request each.
    pub fn telling(self) -> Controller<K, Dependents<K>> {
        let mut controller = self.decided();
        controller.form.tells = true;
        controller
    }

    fn with_part(self, part: impl Part<K> + 'static) -> Controller<K, Dependents<K>> {
        let mut controller = self.decided();
        controller.form.parts.push(Box::new(part));
        controller
    }

    fn decided(self) -> Controller<K, Dependents<K>> {
        Controller {
            settings: self.settings,
            only: self.only,
            form: self.form.into(),
        }
    }
}

impl<K> From<Undecided> for Dependents<K> {
    fn from(_: Undecided) -> Self {
        Self {
            parts: Vec::new(),
            status: None,
            tells: false,
        }
    }
}
