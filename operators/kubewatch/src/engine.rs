//! One configuration at work: sources, a filter, a worker for each handler, and progress.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::warn;
use windlass::testing::{DueGuard, Environment};

use crate::config::WatchSpec;
use crate::delivery::{Queue, Worker};
use crate::filter::{Filter, namespaces};
use crate::handler::{ConfigError, Handler};
use crate::ledger::{Ledger, Moved};
use crate::notice::Notice;
use crate::progress::{Place, Progress};
use crate::report::Report;
use crate::resource::Watched;
use crate::source::{self, Source};
use crate::transport::Transport;

/// Progress is kept so long after it was made: what happens at once is kept at once.
const SAVE_AFTER: Duration = Duration::from_secs(1);
/// Where nothing happens, progress is kept so seldom.
const SAVE_VERSIONS_AFTER: Duration = Duration::from_mins(4);
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// What a configuration comes to.
pub(crate) struct Plan {
    config: Arc<WatchSpec>,
    handlers: Vec<Handler>,
    filter: Filter,
    watched: Vec<Watched>,
}

impl Plan {
    pub(crate) fn of(config: Arc<WatchSpec>) -> Result<Self, ConfigError> {
        let (handlers, filter) = (Handler::all(&config)?, Filter::of(&config)?);
        let watched = Watched::all(&config);
        if watched.is_empty() {
            return Err(ConfigError::NoResource);
        }
        Ok(Self {
            config,
            handlers,
            filter,
            watched,
        })
    }

    /// The names of its handlers.
    pub(crate) fn handlers(&self) -> impl Iterator<Item = &'static str> {
        self.handlers.iter().map(Handler::name)
    }
}

/// A configuration at work.
pub(crate) struct Engine {
    pub(crate) plan: Plan,
    pub(crate) client: Client,
    pub(crate) environment: Environment,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) place: Place,
    pub(crate) report: Arc<Report>,
}

/// When progress is kept next.
struct Save {
    at: Instant,
    _due: Option<DueGuard>,
}

impl Engine {
    /// Works until it is dropped.
    pub(crate) async fn run(self) {
        let stored = self.load().await;
        let mut progress = stored.unwrap_or_default();
        self.report.dropped_before(progress.dropped);
        let (reports, mut reported) = unbounded_channel();
        let (done, finished) = unbounded_channel();
        let mut tasks = JoinSet::new();
        self.start_sources(&mut progress, &reports, &mut tasks);
        let workers: Vec<Arc<Worker>> = self
            .plan
            .handlers
            .iter()
            .map(|one| self.worker(one))
            .collect();
        for worker in &workers {
            tasks.spawn(Arc::clone(worker).run());
        }
        self.work(progress, &workers, &mut reported, (done, finished))
            .await;
    }

    async fn load(&self) -> Option<Progress> {
        loop {
            match self.place.load().await {
                Ok(progress) => return progress,
                Err(error) => {
                    warn!(%error, "cannot read progress");
                    let at = Instant::now() + RETRY_AFTER;
                    let _planned = self.environment.activity.planned(at);
                    sleep_until(at).await;
                }
            }
        }
    }

    fn start_sources(
        &self,
        progress: &mut Progress,
        reports: &UnboundedSender<source::Report>,
        tasks: &mut JoinSet<()>,
    ) {
        let namespaces = namespaces(&self.plan.config);
        let sends_old = |handler: &Handler| matches!(handler, Handler::CloudEvent(_));
        let keeps_old = self.plan.filter.sees_old() || self.plan.handlers.iter().any(sends_old);
        let mut paths = Vec::new();
        for watched in &self.plan.watched {
            let path = watched.path(&namespaces);
            let known = progress.kinds.get(&path).cloned();
            let around = (self.client.clone(), self.environment.clone());
            let (watched, reports) = (watched.clone(), reports.clone());
            let source = Source::new(watched, path.clone(), around, keeps_old, known, reports);
            tasks.spawn(source.run());
            paths.push(path);
        }
        progress.kinds.retain(|path, _| paths.contains(path));
    }

    fn worker(&self, handler: &Handler) -> Arc<Worker> {
        Arc::new(Worker {
            handler: handler.clone(),
            queue: Arc::new(Queue::default()),
            config: Arc::clone(&self.plan.config),
            transport: Arc::clone(&self.transport),
            environment: self.environment.clone(),
            report: Arc::clone(&self.report),
        })
    }

    async fn work(
        &self,
        mut progress: Progress,
        workers: &[Arc<Worker>],
        reported: &mut UnboundedReceiver<source::Report>,
        (done, mut finished): (UnboundedSender<u64>, UnboundedReceiver<u64>),
    ) {
        let mut ledger = Ledger::new(done);
        let mut save: Option<Save> = None;
        loop {
            let due = async {
                match &save {
                    Some(save) => sleep_until(save.at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(number) = finished.recv() => match ledger.done(number, &mut progress) {
                    Moved::Objects => self.save_after(SAVE_AFTER, &mut save),
                    Moved::Versions => self.save_after(SAVE_VERSIONS_AFTER, &mut save),
                    Moved::No => {}
                },
                Some(report) = reported.recv() => match report {
                    source::Report::Change(step, notice) => {
                        let ticket = Arc::new(ledger.enter(step));
                        if self.plan.filter.passes(&notice) {
                            let notice: Arc<Notice> = Arc::from(notice);
                            for worker in workers { worker.take(&notice, &ticket); }
                        }
                    }
                    // No handler has anything to do with it: it is done when all before it is.
                    source::Report::Version(step) => drop(ledger.enter(step)),
                    source::Report::Baseline(kind, baseline) => {
                        progress.kinds.insert(kind, baseline);
                        self.save_after(SAVE_AFTER, &mut save);
                    }
                    source::Report::State(kind, error) => self.report.unwatched(kind, error.as_deref()),
                },
                () = due => {
                    progress.dropped = self.report.dropped_so_far();
                    save = self.save(&progress).await;
                }
            }
        }
    }

    /// Keeps progress after a time, if not before.
    fn save_after(&self, time: Duration, save: &mut Option<Save>) {
        let at = Instant::now() + time;
        if save.as_ref().is_some_and(|save| save.at <= at) {
            return;
        }
        let activity = &self.environment.activity;
        let due = || activity.due(at, "kubewatch: keep progress");
        *save = Some(Save {
            at,
            _due: (time == SAVE_AFTER).then(due),
        });
    }

    async fn save(&self, progress: &Progress) -> Option<Save> {
        let busy = self.environment.activity.busy("kubewatch: keep progress");
        let saved = self.place.save(progress).await;
        drop(busy);
        let error = saved.err()?;
        warn!(%error, "cannot keep progress");
        let at = Instant::now() + RETRY_AFTER;
        Some(Save { at, _due: None })
    }
}
