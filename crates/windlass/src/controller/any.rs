//! [`AnyController`]: a controller of any kind, as operators hold it.

use std::sync::{Arc, OnceLock};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use windlass_manifests::Part;

use super::{
    Controller,
    engine::Engine,
    parts::Parts,
    session::{ControllerInfo, Shared},
};
use crate::{
    Declare,
    cache::{Caches, Store},
    declare::{
        Grant,
        wiring::{self, Undo, Wires},
    },
    event, finalizer,
    handle::Verb,
    kind::Object,
    operator::Signals,
    queue::Queue,
};

/// A controller of any kind. Every [`Controller`] becomes one by `into()`.
pub struct AnyController {
    crd: Option<CustomResourceDefinition>,
    flaw: Option<String>,
    describe: Box<dyn Fn() -> Described + Send + Sync>,
    /// What it said; it is asked often.
    described: OnceLock<Described>,
    bind: Bind,
}

/// What a declaration says, without being run.
struct Described {
    part: Part,
    /// What is wrong with it.
    flaws: Vec<String>,
}

type Bind = Box<dyn Fn(&Arc<Shared>) -> Bound + Send + Sync>;

/// A controller that is wired up.
pub(crate) struct Bound {
    pub(crate) run: Run,
    /// What it reads.
    pub(crate) stores: Vec<Arc<Store>>,
    /// What ends with it.
    pub(crate) undo: Undo,
}

/// Runs a bound controller from when it leads until it is to stop.
pub(crate) type Run = Box<dyn FnOnce(Signals) -> BoxFuture<'static, ()> + Send>;

impl AnyController {
    pub(crate) fn crd(&self) -> Option<&CustomResourceDefinition> {
        self.crd.as_ref()
    }

    /// Why it cannot run: its definition could not be made, or its declaration contradicts itself.
    pub(crate) fn flaws(&self) -> impl Iterator<Item = &str> {
        let declared = self.described().flaws.iter().map(String::as_str);
        self.flaw.as_deref().into_iter().chain(declared)
    }

    pub(crate) fn describe(&self) -> &Part {
        &self.described().part
    }

    fn described(&self) -> &Described {
        self.described.get_or_init(|| (self.describe)())
    }

    /// Declares, wires up the watches, and returns what runs the controller.
    pub(crate) fn bind(&self, shared: &Arc<Shared>) -> Bound {
        (self.bind)(shared)
    }
}

impl<K: Object> From<Controller<K>> for AnyController {
    fn from(controller: Controller<K>) -> Self {
        let (crd, flaw) = (
            controller.settings.crd.clone(),
            controller.settings.flaw.clone(),
        );
        let controller = Arc::new(controller);
        let described = Arc::clone(&controller);
        Self {
            crd,
            flaw,
            describe: Box::new(move || {
                let caches = Arc::new(Caches::of_description());
                let (declare, _) = declare(&described, caches);
                Described {
                    flaws: declare.flaws(),
                    part: Part {
                        name: described.settings.name.clone(),
                        purpose: format!("reconciles {}", described.settings.kind),
                        watches: declare.watches,
                        rules: declare.rules,
                    },
                }
            }),
            described: OnceLock::new(),
            bind: Box::new(move |shared| bind(&controller, shared)),
        }
    }
}

/// Runs the declaration: first what every controller of the kind needs, then the author's.
fn declare<K: Object>(controller: &Controller<K>, caches: Arc<Caches>) -> (Declare<K>, Parts<K>) {
    let settings = &controller.settings;
    let kind = &settings.kind;
    let mut declare = Declare::new(caches, settings.name.as_str().into(), kind.clone());
    let own = |verbs: &[Verb]| {
        let (group, plural) = (kind.group.as_str(), kind.plural.as_str());
        Grant::new(group, plural, verbs.iter().copied())
    };
    declare.grant(own(&Verb::READ), "reconciles them");
    if settings.crd.is_some() || settings.finalizer.is_some() || has_cleanup(controller) {
        declare.grant(own(&[Verb::Patch]), "keeps its finalizer on them");
    }
    let has_status = settings
        .crd
        .as_ref()
        .is_some_and(|crd| schema_of(crd).status);
    if has_status || controller.status.is_some() {
        declare.writes_status();
    }
    declare.grant(event::grant(), "reports events");
    declare.watch(kind, &settings.scope, "changes wake the object itself");
    let parts = Parts::bind(&controller.parts, controller.status.clone(), &mut declare);
    (declare, parts)
}

fn has_cleanup<K>(controller: &Controller<K>) -> bool {
    controller.parts.iter().any(|part| part.has_cleanup())
}

fn bind<K: Object>(controller: &Controller<K>, shared: &Arc<Shared>) -> Bound {
    let settings = &controller.settings;
    let (declare, parts) = declare(controller, Arc::clone(&shared.caches));
    let kind = settings.kind.clone();
    let schema = settings.crd.as_ref().map(schema_of).unwrap_or_default();
    let info = Arc::new(ControllerInfo {
        name: settings.name.as_str().into(),
        reporter: settings
            .reporter
            .clone()
            .unwrap_or_else(|| Arc::clone(&shared.operator)),
        writes_status: declare.writes_status,
        stages: controller.parts.iter().any(|part| part.is_stage()),
        conditions: schema.conditions,
        observed_generation: schema.observed_generation,
        finalizer: settings
            .finalizer
            .clone()
            .unwrap_or_else(|| finalizer::name(&kind, &shared.operator)),
        records_events: settings.records_events,
        observes: controller.status.is_some() || controller.parts.len() > 1,
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
        undo: Undo::default(),
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
    wiring::primary(&wires, controller.only.clone());
    let engine = Arc::new(Engine {
        info,
        shared: Arc::clone(shared),
        queue: wires.queue,
        store: wires.primary,
        stores: declare.stores.clone(),
        parts,
        has_cleanup: has_cleanup(controller),
        matching: controller.matching.clone(),
        metrics,
        concurrency: settings.concurrency,
        timeout: settings.timeout,
        resync: settings.resync,
        sources: settings.sources.clone(),
        keeps_finalizers: settings.crd.is_some() || settings.finalizer.is_some(),
    });
    Bound {
        run: Box::new(move |signals| engine.run(signals).boxed()),
        stores: declare.stores,
        undo: wires.undo,
    }
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
