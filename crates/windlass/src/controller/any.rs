//! [`AnyController`]: a controller of whatever kind and form, as operators hold it.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use windlass_manifests::Part;

use super::{
    Controller, DeclareSteps, Reconciled, Settings,
    dependents::Dependents,
    engine::Engine,
    session::{ControllerInfo, Shared},
    steps::{Plain, Steps},
};
use crate::{
    Declare, Grant, Kind, KindInfo, Metrics, Predicate, Verb,
    cache::Caches,
    declare::wiring::{self, Wires},
    event,
    operator::Signals,
    queue::Queue,
};

/// A controller of any kind and form. Every controller that has a form becomes one by `into()`.
pub struct AnyController {
    crd: Option<CustomResourceDefinition>,
    flaw: Option<String>,
    describe: Box<dyn Fn() -> Part + Send + Sync>,
    /// What it said; it is asked often.
    described: OnceLock<Part>,
    bind: Bind,
}

type Bind = Box<dyn Fn(&Arc<Shared>) -> Run + Send + Sync>;

/// Runs a bound controller from when it leads until it is to stop.
pub(crate) type Run = Box<dyn FnOnce(Signals) -> BoxFuture<'static, ()> + Send>;

impl AnyController {
    pub(crate) fn crd(&self) -> Option<&CustomResourceDefinition> {
        self.crd.as_ref()
    }

    /// Why the definition of its kind could not be made.
    pub(crate) fn flaw(&self) -> Option<&str> {
        self.flaw.as_deref()
    }

    pub(crate) fn describe(&self) -> &Part {
        self.described.get_or_init(|| (self.describe)())
    }

    /// Declares, wires up the watches, and returns what runs the controller.
    pub(crate) fn bind(&self, shared: &Arc<Shared>) -> Run {
        (self.bind)(shared)
    }

    fn new<K: Kind>(settings: Settings, only: Option<Predicate<K>>, form: Form<K>) -> Self {
        let (crd, flaw) = (settings.crd.clone(), settings.flaw.clone());
        let form = Arc::new(form);
        let (described, described_settings) = (Arc::clone(&form), settings.clone());
        Self {
            crd,
            flaw,
            describe: Box::new(move || {
                let caches = Arc::new(Caches::new(
                    "description".into(),
                    BTreeMap::new(),
                    Metrics::default(),
                ));
                let (declare, _) = declare(&described_settings, &described, caches);
                Part {
                    name: described_settings.name.clone(),
                    purpose: format!("reconciles {}", KindInfo::of::<K>()),
                    watches: declare.watches,
                    rules: declare.rules,
                }
            }),
            described: OnceLock::new(),
            bind: Box::new(move |shared| bind(&settings, only.as_ref(), &form, shared)),
        }
    }
}

/// How a form declares itself.
struct Form<K> {
    declare: DeclareSteps<K>,
    cleanup: bool,
    /// Whether the form writes the status.
    status: bool,
}

impl<K: Kind> From<Controller<K, Reconciled<K>>> for AnyController {
    fn from(controller: Controller<K, Reconciled<K>>) -> Self {
        let Reconciled { declare, cleanup } = controller.form;
        Self::new(
            controller.settings,
            controller.only,
            Form {
                declare,
                cleanup,
                status: false,
            },
        )
    }
}

impl<K: Kind> From<Controller<K, Dependents<K>>> for AnyController {
    fn from(controller: Controller<K, Dependents<K>>) -> Self {
        let status = controller.form.status.is_some();
        let declare = Box::new(move |declare: &mut Declare<K>| {
            Box::new(Plain(controller.form.bind(declare))) as Box<dyn Steps<K>>
        });
        Self::new(
            controller.settings,
            controller.only,
            Form {
                declare,
                cleanup: false,
                status,
            },
        )
    }
}

/// Runs the declaration: first what every controller of the kind needs, then the author's.
fn declare<K: Kind>(
    settings: &Settings,
    form: &Form<K>,
    caches: Arc<Caches>,
) -> (Declare<K>, Box<dyn Steps<K>>) {
    let kind = KindInfo::of::<K>();
    let mut declare = Declare::new(caches, settings.name.as_str().into());
    declare.grant(Grant::of::<K>(Verb::READ), "reconciles them");
    if settings.crd.is_some() || form.cleanup {
        declare.grant(Grant::of::<K>([Verb::Patch]), "keeps its finalizer on them");
    }
    let has_status = settings
        .crd
        .as_ref()
        .is_some_and(|crd| schema_of(crd).status);
    if has_status || form.status {
        declare.writes_status();
    }
    declare.grant(event::grant(), "reports events");
    declare.watch(&kind, &settings.scope, "changes wake the object itself");
    let steps = (form.declare)(&mut declare);
    (declare, steps)
}

fn bind<K: Kind>(
    settings: &Settings,
    only: Option<&Predicate<K>>,
    form: &Form<K>,
    shared: &Arc<Shared>,
) -> Run {
    let (declare, steps) = declare(settings, form, Arc::clone(&shared.caches));
    let kind = KindInfo::of::<K>();
    let schema = settings.crd.as_ref().map(schema_of).unwrap_or_default();
    let info = Arc::new(ControllerInfo {
        name: settings.name.as_str().into(),
        reporter: settings
            .reporter
            .clone()
            .unwrap_or_else(|| Arc::clone(&shared.operator)),
        writes_status: declare.writes_status,
        conditions: schema.conditions,
        observed_generation: schema.observed_generation,
        kind: kind.clone(),
    });
    let wires = Wires {
        queue: Arc::new(Queue::new(
            &settings.name,
            shared.environment.activity.clone(),
            settings.rate,
            shared.metrics.queue(&settings.name),
        )),
        primary: shared.caches.store(&kind, &settings.scope),
    };
    shared.metrics.live().add_queue(&info.name, &wires.queue);
    let metrics = shared.metrics.controller(&settings.name);
    metrics
        .workers
        .set(i64::try_from(settings.concurrency).unwrap_or(i64::MAX));
    // Indexes follow the reconciled objects before these are enqueued.
    for wiring in declare.wiring {
        wiring(&wires);
    }
    wiring::primary(&wires, only.cloned());
    let engine = Arc::new(Engine {
        info,
        shared: Arc::clone(shared),
        queue: wires.queue,
        store: wires.primary,
        stores: declare.stores,
        steps,
        metrics,
        concurrency: settings.concurrency,
        timeout: settings.timeout,
        resync: settings.resync,
        sources: settings.sources.clone(),
        keeps_finalizers: settings.crd.is_some(),
    });
    Box::new(move |signals| engine.run(signals).boxed())
}

/// What the framework needs to know of a kind's schema.
#[derive(Default)]
struct Schema {
    status: bool,
    conditions: bool,
    observed_generation: bool,
}

fn schema_of(crd: &CustomResourceDefinition) -> Schema {
    let Some(version) = crd.spec.versions.iter().find(|version| version.storage) else {
        return Schema::default();
    };
    let schema = serde_json::to_value(&version.schema).unwrap_or_default();
    let status = "/openAPIV3Schema/properties/status/properties";
    let has = |field: &str| {
        schema
            .pointer(&format!("{status}/{field}"))
            .is_some_and(Value::is_object)
    };
    Schema {
        status: version
            .subresources
            .as_ref()
            .is_some_and(|sub| sub.status.is_some()),
        conditions: has("conditions"),
        observed_generation: has("observedGeneration"),
    }
}
