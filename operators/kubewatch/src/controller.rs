//! The controller of [`Watch`]es: one engine for each, and a status from what it says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use tokio::task::JoinSet;
use windlass::handle::{Access, Raw, Reads, Verb};
use windlass::{Event, FinalizingReconciler, Key, prelude::*};

use crate::config::{Watch, WatchSpec};
use crate::engine::{Engine, Plan};
use crate::progress::Place;
use crate::report::Report;
use crate::resource::FACTS;
use crate::transport::Transport;

/// How often a Secret is looked at again.
const SECRET_AGE: Duration = Duration::from_mins(1);

/// What a watch may do: see the kinds it can be asked to watch, and keep its progress.
pub(crate) fn rights() -> Vec<Access> {
    let kinds = FACTS.iter().map(|(group, _, plural, _, _)| {
        Access::resource(*group, *plural, [Verb::List, Verb::Watch])
    });
    let progress = Access::of::<ConfigMap>([Verb::Get, Verb::Create, Verb::Patch]);
    kinds.chain([progress]).collect()
}

/// How engines wake the controller.
#[derive(Clone, Default)]
pub(crate) struct Wake(Arc<Mutex<Option<UnboundedSender<Key>>>>);

impl Wake {
    fn lock(&self) -> MutexGuard<'_, Option<UnboundedSender<Key>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the controller listens to.
    pub(crate) fn open(&self) -> UnboundedReceiver<Key> {
        let (sender, receiver) = unbounded();
        *self.lock() = Some(sender);
        receiver
    }

    fn wake(&self, key: &Key) {
        if let Some(sender) = &*self.lock() {
            // A controller that has ended wants to know nothing.
            let _ = sender.unbounded_send(key.clone());
        }
    }
}

/// An engine that runs until this is dropped.
struct Running {
    config: Arc<WatchSpec>,
    report: Arc<Report>,
    _task: JoinSet<()>,
}

pub(crate) struct Watcher {
    secrets: Reads<Secret>,
    raw: Raw,
    transport: Arc<dyn Transport>,
    wake: Wake,
    engines: Mutex<BTreeMap<Key, Running>>,
}

impl Watcher {
    pub(crate) fn declare(
        declare: &mut Declare<Watch>,
        transport: &Arc<dyn Transport>,
        wake: &Wake,
    ) -> Self {
        Self {
            secrets: declare.reads_live(),
            raw: declare.raw(rights()),
            transport: Arc::clone(transport),
            wake: wake.clone(),
            engines: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Running>> {
        self.engines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The configuration, with what a Secret adds to it.
    async fn config(&self, watch: &Watch, ctx: &Context<Watch>) -> Result<Option<WatchSpec>> {
        let Some(reference) = &watch.spec.secret else {
            return Ok(Some(watch.spec.clone()));
        };
        let key = Key::namespaced(reference.namespace.as_str(), reference.name.as_str());
        let Some(secret) = self.secrets.get(ctx, &key).await? else {
            return Ok(None);
        };
        let data = secret.data.clone().unwrap_or_default();
        let lookup = |name: &str| {
            let value = data.get(name)?;
            Some(String::from_utf8_lossy(&value.0).trim().to_owned())
        };
        Ok(Some(watch.spec.clone().with_variables(&lookup)))
    }

    /// The report of the engine of a configuration, which runs if it did not.
    fn engine(
        &self,
        watch: &Watch,
        config: WatchSpec,
        ctx: &Context<Watch>,
    ) -> Result<Arc<Report>> {
        let mut engines = self.lock();
        if let Some(running) = engines.get(ctx.key())
            && *running.config == config
        {
            return Ok(Arc::clone(&running.report));
        }
        // The one before ends first: both would keep progress.
        engines.remove(ctx.key());
        let config = Arc::new(config);
        let plan =
            Plan::of(Arc::clone(&config)).map_err(|error| Error::terminal(error.to_string()))?;
        let (wake, key) = (self.wake.clone(), ctx.key().clone());
        let report = Arc::new(Report::new(plan.handlers(), move || wake.wake(&key)));
        let client = self.raw.client(ctx);
        let engine = Engine {
            plan,
            environment: ctx.environment().clone(),
            transport: Arc::clone(&self.transport),
            place: Place {
                namespace: client.default_namespace().to_owned(),
                client: client.clone(),
                name: format!("kubewatch-{}", watch.name_any()),
                owner: Some(ctx.owner_reference()),
            },
            client,
            report: Arc::clone(&report),
        };
        let mut task = JoinSet::new();
        task.spawn(engine.run());
        let running = Running {
            config,
            report: Arc::clone(&report),
            _task: task,
        };
        engines.insert(ctx.key().clone(), running);
        Ok(report)
    }
}

impl FinalizingReconciler for Watcher {
    type Object = Watch;

    async fn reconcile(&self, watch: &Watch, ctx: &Context<Watch>) -> Result<Action> {
        let Some(config) = self.config(watch, ctx).await? else {
            let message = "the secret with the handlers' settings is missing";
            let waiting = Action::waiting("SecretNotFound", message);
            return Ok(waiting.requeue_after(SECRET_AGE));
        };
        let report = self.engine(watch, config, ctx)?;
        let status = report.status();
        let before = watch.status.as_ref().map_or(0, |status| status.dropped);
        if status.dropped > before {
            let count = status.dropped - before;
            let note = format!("gave up {count} messages, the last: {}", report.why());
            ctx.event(Event::warning("MessagesDropped", note));
        }
        let failing = status.handlers.iter().find_map(|handler| {
            let error = handler.failing.as_ref()?;
            Some(format!("{}: {error}", handler.name))
        });
        let unwatched = status.unwatched.first().cloned();
        ctx.set_status(status)?;
        let action = match (unwatched, failing) {
            (Some(kind), _) => Action::waiting("CannotWatch", kind),
            (None, Some(handler)) => Action::waiting("CannotSend", handler),
            (None, None) => Action::done(),
        };
        Ok(match watch.spec.secret {
            Some(_) => action.requeue_after(SECRET_AGE),
            None => action,
        })
    }

    async fn cleanup(&self, _: &Watch, ctx: &Context<Watch>) -> Result<Action> {
        self.lock().remove(ctx.key());
        Ok(Action::done())
    }
}
