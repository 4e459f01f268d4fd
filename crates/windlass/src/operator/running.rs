//! [`Running`]: a started operator.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::task::{self, Task, TaskContext};
use crate::{
    AnyController, Environment, Error, KindInfo, Result,
    cache::{Caches, Feeds, Transform},
    client::{Alive, Requests},
    controller::Shared,
    event::Recorder,
    webhook::{AnyVersions, AnyWebhook, Router, certificate::Lives, serving::Serving},
};
use windlass_manifests::Description;

/// How long a stop waits for the reconciles under way.
const GRACE: Duration = Duration::from_secs(30);

/// A started operator. Dropping it ends everything at once, as a crash would: not another request
/// is sent through its handles. [`Running::stop`] lets the reconciles under way finish.
#[must_use = "dropping a running operator ends it at once"]
pub struct Running {
    name: Arc<str>,
    alive: Alive,
    stopping: CancellationToken,
    caches: Arc<Caches>,
    /// Controllers and background tasks: what a stop waits for.
    work: JoinSet<()>,
    /// The event recorder: ends by itself when no work is left to report events.
    events: JoinSet<()>,
    /// Watches: what work depends on.
    feeds: Arc<Feeds>,
}

/// What an operator answers when it is asked.
pub(super) struct Hooks<'a> {
    pub(super) webhooks: &'a [AnyWebhook],
    pub(super) versions: &'a [AnyVersions],
    pub(super) description: Description,
    pub(super) lives: Lives,
}

impl Running {
    pub(super) fn start(
        name: &Arc<str>,
        controllers: &[AnyController],
        tasks: &[Arc<Task>],
        transforms: &BTreeMap<KindInfo, Transform>,
        hooks: Hooks<'_>,
        client: kube::Client,
        environment: Environment,
    ) -> Self {
        let alive = Alive::new();
        let requests = Requests::new(client.clone(), Arc::clone(name), alive.clone());
        let caches = Arc::new(Caches::new(Arc::clone(name), transforms.clone()));
        let feeds = Arc::new(Feeds::new(client.clone(), environment.clone()));
        let (recorder, record) =
            Recorder::new(Arc::clone(name), requests.clone(), environment.clone());
        let shared = Arc::new(Shared {
            operator: Arc::clone(name),
            requests,
            caches: Arc::clone(&caches),
            feeds: Arc::clone(&feeds),
            environment: environment.clone(),
            recorder,
        });
        let stopping = CancellationToken::new();
        let serving = hooks.description.has_webhooks().then(|| {
            Arc::new(Serving {
                router: Arc::new(Router::new(hooks.webhooks, hooks.versions, &caches)),
                description: Arc::new(hooks.description),
                lives: hooks.lives,
                caches: Arc::clone(&caches),
                requests: shared.requests.clone(),
                environment: environment.clone(),
                stopping: stopping.clone(),
            })
        });
        let keeper = serving.as_ref().and_then(Serving::keeper);
        let (mut work, mut events) = (JoinSet::new(), JoinSet::new());
        // Every controller has subscribed before the first watch starts.
        let runs: Vec<_> = controllers
            .iter()
            .map(|controller| controller.bind(&shared))
            .collect();
        drop(shared);
        events.spawn(record);
        for store in caches.all() {
            feeds.start(&store);
        }
        // Webhooks are served before anybody writes: what this operator writes may pass them.
        if let Some(serving) = serving {
            work.spawn(serving.run(keeper));
        }
        for run in runs {
            work.spawn(run(stopping.clone()));
        }
        let ctx = TaskContext {
            client,
            environment,
            stopping: stopping.clone(),
        };
        for task in tasks {
            work.spawn(task::supervise(Arc::clone(task), ctx.clone()));
        }
        info!(operator = %name, "started");
        Self {
            name: Arc::clone(name),
            alive,
            stopping,
            caches,
            work,
            events,
            feeds,
        }
    }

    /// Waits until every cache holds the first full list of its kind.
    pub async fn synced(&self) {
        for store in self.caches.all() {
            store.synced().await;
        }
    }

    /// As [`synced`](Self::synced), for so long; the error names every kind that is missing.
    pub async fn synced_within(&self, limit: Duration) -> Result<()> {
        if tokio::time::timeout(limit, self.synced()).await.is_ok() {
            return Ok(());
        }
        let stores = self.caches.all();
        let missing = stores.iter().filter(|store| !store.is_synced());
        let missing = missing.map(|store| {
            let why = if store.is_missing() {
                " (not served)"
            } else {
                ""
            };
            format!("{}{why}", store.kind)
        });
        Err(Error::NotSynced {
            kinds: missing.collect::<Vec<_>>().join(", "),
            seconds: limit.as_secs(),
        })
    }

    /// Takes no new work, lets the reconciles under way finish (within 30 s), and ends.
    pub async fn stop(mut self) {
        self.stopping.cancel();
        let finish = async {
            while self.work.join_next().await.is_some() {}
            while self.events.join_next().await.is_some() {}
        };
        if tokio::time::timeout(GRACE, finish).await.is_err() {
            warn!(operator = %self.name, "some work did not finish in time and is cut off");
        }
        info!(operator = %self.name, "stopped");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.alive.end();
        self.stopping.cancel();
        self.work.abort_all();
        self.events.abort_all();
        self.feeds.end();
    }
}
