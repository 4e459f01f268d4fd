//! [`Running`]: a started operator.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{
    Operator,
    debug::DebugInfo,
    late::Late,
    task::{self, TaskContext},
};
use crate::{
    Error, Result,
    cache::{Caches, Feeds},
    client::{Gate, Leads, Requests, guard},
    controller::{History, Repetitions, Shared},
    event::Recorder,
    leader::Elector,
    run::LeaderElection,
    telemetry,
    testing::Environment,
};

/// How long a stop waits for the reconciles under way.
const GRACE: Duration = Duration::from_secs(30);

/// How an operator is started.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// How it agrees with its other replicas on which of them writes; none if it has none.
    pub leader_election: Option<LeaderElection>,
    /// The API server's name in metrics.
    pub host: String,
    /// A rehearsal: every write is sent as a dry run, so that the API server judges it and stores
    /// nothing, and the log says what would change. It takes no part in an election, and serves no
    /// webhooks: both would be real.
    pub dry_run: bool,
}

/// A thread and a client apart from the operator's own: what a reconcile that blocks its thread
/// must not hold up goes on there.
pub(crate) struct Apart {
    pub(crate) runtime: tokio::runtime::Handle,
    pub(crate) client: kube::Client,
}

/// When a part of the operator may begin, and must end.
#[derive(Clone)]
pub(crate) struct Signals {
    /// Cancelled when this replica leads.
    pub(crate) leading: CancellationToken,
    /// Cancelled when no new work is to be begun.
    pub(crate) stopping: CancellationToken,
}

/// A started operator. Dropping it ends everything at once, as a crash would: not another request
/// is sent through its handles. [`Running::stop`] lets the reconciles under way finish.
#[must_use = "dropping a running operator ends it at once"]
pub struct Running {
    name: Arc<str>,
    gate: Gate,
    signals: Signals,
    lost: CancellationToken,
    release: CancellationToken,
    caches: Arc<Caches>,
    debug: DebugInfo,
    /// Controllers and background tasks: what a stop waits for.
    work: JoinSet<()>,
    /// Controllers that were started since.
    late: Late,
    /// The event recorder: ends by itself when no work is left to report events.
    events: JoinSet<()>,
    /// Watches: what work depends on.
    feeds: Arc<Feeds>,
    /// The election: goes on until all work is done.
    election: JoinSet<()>,
}

impl Running {
    pub(super) fn start(
        operator: &Operator,
        unguarded: kube::Client,
        environment: Environment,
        launch: Launch,
        apart: Option<Apart>,
    ) -> Self {
        let name = &operator.name;
        let manager = operator.manager.as_ref().unwrap_or(name);
        let metrics = operator.metrics.clone();
        let dry_run = launch.dry_run;
        let election_wanted = launch.leader_election.filter(|_| !dry_run);
        let gate = Gate::new(match election_wanted {
            Some(_) => Leads::No,
            None => Leads::Always,
        });
        let host: Arc<str> = launch.host.into();
        let (guarded, counted) = (unguarded.clone(), metrics.requests(host));
        let client = guard(guarded, gate.clone(), counted, dry_run);
        let transforms: BTreeMap<_, _> = operator.transforms.clone();
        let caches = Caches::new(Arc::clone(manager), transforms, metrics.clone());
        let caches = Arc::new(caches.rehearsing(dry_run));
        let mut requests = Requests::new(client.clone(), Arc::clone(manager));
        if dry_run {
            requests = requests.rehearsing(&caches);
        }
        metrics.live().add_caches(&caches);
        let feeds = Arc::new(Feeds::new(client.clone(), environment.clone()));
        let (recorder, record) = Recorder::new(
            requests.clone(),
            environment.clone(),
            metrics.live().events(),
        );
        let history = Arc::new(History::default());
        let signals = Signals {
            leading: CancellationToken::new(),
            stopping: CancellationToken::new(),
        };
        let late = Late::default();
        let shared = Arc::new(Shared {
            operator: Arc::clone(name),
            manager: Arc::clone(manager),
            signals: signals.clone(),
            late: late.clone(),
            requests,
            caches: Arc::clone(&caches),
            feeds: Arc::clone(&feeds),
            environment: environment.clone(),
            recorder,
            metrics: metrics.clone(),
            writes: telemetry::Writes::default(),
            repetitions: Repetitions::default(),
            history: Arc::clone(&history),
        });
        let (lost, release) = (CancellationToken::new(), CancellationToken::new());
        let serving = (!dry_run).then(|| operator.webhooks.serve(operator, &shared, &signals));
        let (mut work, mut events, mut election) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
        // Every controller has subscribed before the first watch starts.
        let runs: Vec<_> = operator
            .controllers
            .iter()
            .map(|controller| controller.bind(&shared).run)
            .collect();
        drop(shared);
        events.spawn(record);
        // Caches are warm before this replica leads.
        for store in caches.all() {
            feeds.start(&store);
        }
        // Webhooks are served before anybody writes: what this operator writes may pass them. They
        // are asked of every replica, whichever leads.
        if let Some(serving) = serving.flatten() {
            work.spawn(serving);
        }
        match election_wanted {
            None => signals.leading.cancel(),
            Some(leader) => {
                let (runtime, client) = match apart {
                    Some(apart) => (apart.runtime, apart.client),
                    None => (tokio::runtime::Handle::current(), unguarded),
                };
                let elector = Elector {
                    election: leader,
                    client,
                    gate: gate.clone(),
                    environment: environment.clone(),
                    metrics: metrics.clone(),
                    leading: signals.leading.clone(),
                    lost: lost.clone(),
                    release: release.clone(),
                };
                election.spawn_on(elector.run(), &runtime);
            }
        }
        for run in runs {
            work.spawn(run(signals.clone()));
        }
        let ctx = TaskContext {
            client,
            environment,
            stopping: signals.stopping.clone(),
        };
        for task in &operator.tasks {
            let leading = signals.leading.clone();
            work.spawn(task::supervise(Arc::clone(task), ctx.clone(), leading));
        }
        if dry_run {
            info!(operator = %name, "dry run: writes are judged by the API server and not stored");
        }
        info!(operator = %name, "started");
        Self {
            name: Arc::clone(name),
            gate,
            signals,
            lost,
            release,
            debug: DebugInfo::new(Arc::clone(name), metrics, history),
            caches,
            work,
            late,
            events,
            feeds,
            election,
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
        Err(Error::NotSynced {
            kinds: self.debug.unsynced().join(", "),
            seconds: limit.as_secs(),
        })
    }

    /// Whether it may write: it leads, or there is no election.
    pub fn leads(&self) -> bool {
        self.gate.leads()
    }

    /// Ends when the lease is lost: another replica may be writing, and this one is of no more use.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// What it is doing, for those who look at it from outside.
    pub fn debug(&self) -> DebugInfo {
        self.debug.clone()
    }

    /// Takes no new work, lets the reconciles under way finish (within 30 s), gives the lease back,
    /// and ends.
    pub async fn stop(mut self) {
        self.signals.stopping.cancel();
        let finish = async {
            while self.work.join_next().await.is_some() {}
            self.late.ended().await;
            while self.events.join_next().await.is_some() {}
        };
        if tokio::time::timeout(GRACE, finish).await.is_err() {
            warn!(operator = %self.name, "some work did not finish in time and is cut off");
        }
        // Nothing may be written any more when another is told that it may.
        self.work.abort_all();
        self.late.abort();
        self.release.cancel();
        let given_back = async { while self.election.join_next().await.is_some() {} };
        // Best effort: the lease runs out by itself.
        let _ = tokio::time::timeout(Duration::from_secs(5), given_back).await;
        info!(operator = %self.name, "stopped");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.gate.end();
        self.signals.stopping.cancel();
        self.work.abort_all();
        self.late.abort();
        self.events.abort_all();
        self.election.abort_all();
        self.feeds.end();
    }
}
