//! [`Engine`]: takes keys from the queue and runs the reconciler on them.
//!
//! One reconcile of one key: wait until the cache shows what was written before, read the object,
//! keep the finalizer in step with the cleanup, run the author's code under a time limit and with
//! panics contained, derive the conditions, and tell the queue how it ended.

use std::{collections::VecDeque, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{Instrument, Span, debug, error, info, info_span, warn};

use super::{
    Matching, Source,
    action::{Action, Step},
    context::Context,
    history::Reconcile,
    parts::Parts,
    session::{ControllerInfo, Session, Shared},
};
use crate::{
    Error, Key, Result,
    cache::{CachedObject, Store, Writer},
    error::Class,
    finalizer,
    kind::Object,
    metrics::ControllerMetrics,
    operator::Signals,
    queue::{Cause, Causes, Outcome, Priority, Queue},
    telemetry,
};

/// How long a controller waits for its caches before it says what is missing.
const PATIENCE: Duration = Duration::from_secs(30);

/// A controller ready to run.
pub(crate) struct Engine<K> {
    pub(crate) info: Arc<ControllerInfo>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue: Arc<Queue>,
    /// The store of the reconciled kind.
    pub(crate) store: Arc<Store>,
    /// All stores the controller reads; synced before it starts.
    pub(crate) stores: Vec<Arc<Store>>,
    pub(crate) parts: Parts<K>,
    /// Whether objects have a finalizer.
    pub(crate) has_cleanup: bool,
    /// Which objects are reconciled; all, without it.
    pub(crate) matching: Option<Matching<K>>,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) concurrency: usize,
    pub(crate) timeout: Duration,
    pub(crate) resync: Option<Duration>,
    pub(crate) sources: Vec<Source>,
    /// Whether the operator may change metadata of the kind, and so can remove a finalizer that an
    /// earlier version left.
    pub(crate) keeps_finalizers: bool,
}

impl<K: Object> Engine<K> {
    /// Runs until told to stop, then lets the reconciles under way finish.
    pub(crate) async fn run(self: Arc<Self>, signals: Signals) {
        let Signals { leading, stopping } = signals;
        tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            () = async {
                self.synced().await;
                leading.cancelled().await;
            } => {}
        }
        debug!(controller = %self.info.name, "caches are synced, reconciling");
        self.queue.set_dormant(false);
        let mut sources = self.wakers();
        let mut running = JoinSet::new();
        // Keys whose last writes the cache does not show yet: they take nobody's place.
        let mut parked: JoinSet<(Key, Causes)> = JoinSet::new();
        let mut resumed: VecDeque<(Key, Causes)> = VecDeque::new();
        loop {
            let free = running.len() < self.concurrency;
            if free && let Some((key, causes)) = resumed.pop_front() {
                running.spawn(Arc::clone(&self).process(key, causes));
                continue;
            }
            tokio::select! {
                biased;
                () = stopping.cancelled() => break,
                Some(_) = running.join_next(), if !running.is_empty() => {}
                Some(_) = sources.join_next(), if !sources.is_empty() => {}
                Some(Ok(key)) = parked.join_next(), if !parked.is_empty() => resumed.push_back(key),
                (key, causes) = self.queue.next(), if free => {
                    let writer = self.writer(&key);
                    if self.stores.iter().any(|store| store.owes(&writer)) {
                        let engine = Arc::clone(&self);
                        parked.spawn(async move {
                            for store in &engine.stores {
                                store.catches_up_with(&writer).await;
                            }
                            (key, causes)
                        });
                    } else {
                        running.spawn(Arc::clone(&self).process(key, causes));
                    }
                }
            }
        }
        drop((sources, parked));
        self.queue.set_dormant(true);
        while running.join_next().await.is_some() {}
    }

    fn writer(&self, key: &Key) -> Writer {
        Writer {
            controller: Arc::clone(&self.info.name),
            key: key.clone(),
        }
    }

    /// What wakes keys besides changes: sources outside the cluster, and the resync.
    fn wakers(&self) -> JoinSet<()> {
        let mut wakers = JoinSet::new();
        for source in &self.sources {
            let (queue, name) = (Arc::clone(&self.queue), Arc::clone(&source.name));
            let mut keys = (source.open)();
            wakers.spawn(async move {
                while let Some(key) = keys.next().await {
                    queue.add(key, Priority::High, Cause::Source(Arc::clone(&name)));
                }
            });
        }
        if let Some(every) = self.resync {
            let (queue, store) = (Arc::clone(&self.queue), Arc::clone(&self.store));
            wakers.spawn(async move {
                loop {
                    tokio::time::sleep(every).await;
                    for key in store.keys() {
                        queue.add(key, Priority::Low, Cause::Resync);
                    }
                }
            });
        }
        wakers
    }

    /// Waits for the first list of everything the controller reads, naming what keeps it waiting.
    async fn synced(&self) {
        for store in &self.stores {
            while tokio::time::timeout(PATIENCE, store.synced())
                .await
                .is_err()
            {
                let waiting = self.stores.iter().filter(|store| !store.is_synced());
                let kinds: Vec<String> = waiting.map(|store| store.kind.to_string()).collect();
                let (controller, kinds) = (&self.info.name, kinds.join(", "));
                warn!(%controller, "still waiting for the first list of {kinds}");
            }
        }
    }

    async fn process(self: Arc<Self>, key: Key, causes: Causes) {
        let cause = causes.to_string();
        let id = format!("{:016x}", self.shared.environment.random.bits());
        let begun = Instant::now();
        self.metrics.active.inc();
        let span = info_span!(
            "reconcile",
            controller = %self.info.name,
            object = %key,
            reconcileID = id,
            %cause
        );
        self.shared.writes.link(&span, &causes);
        let (told, mut failed) = (cause.clone(), None);
        let outcome = async {
            match self.reconcile(&key, cause).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    let outcome = after(&error);
                    telemetry::failed(&Span::current(), &error);
                    failed = Some(error);
                    outcome
                }
            }
        };
        let outcome = outcome.instrument(span).await;
        let took = begun.elapsed();
        self.metrics.active.dec();
        self.metrics.time.observe(took.as_secs_f64());
        match (&failed, outcome) {
            // Somebody else was quicker, or the cache is behind: not an error.
            (Some(error), _) if error.class() == Class::Conflict => {
                self.metrics.requeue.inc();
            }
            (Some(error), _) => self.metrics.failed(error),
            (None, Outcome::After(_) | Outcome::UnderWay(_)) => {
                self.metrics.requeue_after.inc();
            }
            (None, _) => {
                self.metrics.success.inc();
            }
        }
        self.shared.history.reconciled(Reconcile {
            at: self.shared.environment.clock.now(),
            controller: self.info.name.to_string(),
            object: key.to_string(),
            id,
            causes: told,
            milliseconds: took.as_millis(),
            error: failed.map(|error| error.to_string()),
        });
        self.queue.finish(&key, outcome);
    }

    async fn reconcile(&self, key: &Key, cause: String) -> Result<Outcome> {
        let Some(cached) = self.store.get(key) else {
            debug!("object is gone");
            self.guard(self.parts.gone(key)).await?;
            return Ok(Outcome::Settled);
        };
        let shared = Arc::clone(&self.shared);
        let session = Session::new(shared, Arc::clone(&self.info), &cached, cause);
        let ctx = Context::new(session);
        let result = match self.guard(self.visit(&cached, &ctx)).await {
            Err(Error::Waiting { reason, message }) => Ok(Action::waiting(reason, message)),
            result => result,
        };
        // A conflict is no news for people, and an object on its way out needs no conditions.
        let failure = result.as_ref().err().map(Error::class);
        if failure != Some(Class::Conflict) && !cached.terminating {
            let concluded = self.guard(ctx.session.conclude(result.as_ref())).await;
            // What is tried again reports again; what is not must not lose its report.
            if failure.is_none_or(|class| class == Class::Terminal) {
                concluded?;
            }
        }
        let action = result?;
        match &action.step {
            Step::Done => debug!("done"),
            Step::InProgress(_) => debug!("in progress"),
            Step::Waiting { reason, message } => debug!(reason, message, "waiting"),
        }
        let delay = action.delay(self.shared.environment.clock.now());
        Ok(match (action.step, delay) {
            (Step::InProgress(_), Some(delay)) => Outcome::UnderWay(delay),
            (_, Some(delay)) => Outcome::After(delay),
            (_, None) => Outcome::Settled,
        })
    }

    /// Runs the author's code under the time limit, with panics contained.
    async fn guard<T>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let contained = AssertUnwindSafe(work).catch_unwind();
        match tokio::time::timeout(self.timeout, contained).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => Err(Error::Panic {
                message: message_of(&*panic),
            }),
            Err(_) => Err(Error::Timeout {
                seconds: self.timeout.as_secs(),
            }),
        }
    }

    /// Runs the step that is due for the object's stage of life.
    async fn visit(&self, cached: &Arc<CachedObject>, ctx: &Context<K>) -> Result<Action> {
        let finalizer = self.info.finalizer.as_str();
        let object: Arc<K> = self.store.typed(cached)?;
        let mut finalizers = object.meta().finalizers.iter().flatten();
        let present = finalizers.any(|have| have == finalizer);
        let matches = self.matching.as_ref().is_none_or(|of| of(&object));
        if !matches && !present {
            return Ok(Action::done());
        }
        if cached.terminating || !matches {
            if !present {
                return self.parts.terminating(&object, ctx).await;
            }
            let action = self.parts.cleanup(&object, ctx).await?;
            if !action.is_complete() {
                return Ok(action);
            }
            let patch = ctx
                .session
                .current(|value| finalizer::remove(value, finalizer));
            self.patch(ctx, patch).await?;
            return Ok(Action::done());
        }
        let patch = match (self.has_cleanup, present) {
            (true, false) => ctx
                .session
                .current(|value| finalizer::add(value, finalizer)),
            (false, true) if self.keeps_finalizers => {
                info!(
                    finalizer,
                    "removing the finalizer of an earlier version: there is no cleanup any more"
                );
                ctx.session
                    .current(|value| finalizer::remove(value, finalizer))
            }
            _ => return self.parts.reconcile(&object, ctx).await,
        };
        let Some(value) = self.patch(ctx, patch).await? else {
            return Ok(Action::done());
        };
        let object = super::session::decode(&self.info.kind, value)?;
        self.parts.reconcile(&object, ctx).await
    }

    /// Patches the reconciled object itself; none if it is gone.
    async fn patch(&self, ctx: &Context<K>, patch: Value) -> Result<Option<Value>> {
        let kind = &self.info.kind;
        match self
            .shared
            .requests
            .merge(kind, ctx.key(), None, &patch)
            .await
        {
            Ok(answer) => {
                ctx.session.wrote(kind, &answer);
                ctx.session.replace_current(answer.clone());
                Ok(Some(answer))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What happens to a key after an error.
fn after(error: &Error) -> Outcome {
    match error.class() {
        Class::Conflict => {
            debug!(%error, "somebody else wrote first, trying again");
            Outcome::Failed
        }
        // Waiting is an action by now.
        Class::Waiting => Outcome::Settled,
        Class::Terminal => {
            error!(%error, "refused; waiting until something changes");
            Outcome::Settled
        }
        Class::Retry => {
            warn!(%error, "failed, trying again");
            Outcome::Failed
        }
    }
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
