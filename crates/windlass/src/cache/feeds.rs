//! [`Feeds`]: the watches that run, one per store and source however many use it.

use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use kube::Client;
use tokio::task::{AbortHandle, JoinSet};
use tracing::error;

use super::{Store, informer::Informer};
use crate::{kind::KindInfo, testing::Environment, watch::Scope};

/// How soon a watch that panicked is started again.
const RESTART: Duration = Duration::from_secs(1);

/// Runs a watch for ever: a panic in it must not leave a cache that stands still.
async fn supervised(informer: Informer) {
    loop {
        if AssertUnwindSafe(informer.run())
            .catch_unwind()
            .await
            .is_ok()
        {
            return;
        }
        let kind = &informer.store.kind;
        error!(%kind, "the watch panicked, starting it again");
        tokio::time::sleep(RESTART).await;
    }
}

/// Starts and stops watches. Dropped, it ends them all.
pub(crate) struct Feeds {
    client: Client,
    environment: Environment,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    tasks: JoinSet<()>,
    running: BTreeMap<(KindInfo, Scope), Running>,
}

struct Running {
    users: usize,
    watches: Vec<AbortHandle>,
}

impl Feeds {
    pub(crate) fn new(client: Client, environment: Environment) -> Self {
        Self {
            client,
            environment,
            inner: Mutex::default(),
        }
    }

    /// One more uses a store; the first starts its watches.
    pub(crate) fn start(&self, store: &Arc<Store>) {
        let mut inner = self.lock();
        let Inner { tasks, running } = &mut *inner;
        let name = (store.kind.clone(), store.scope.clone());
        let feed = running.entry(name).or_insert_with(|| {
            let sources = store.scope.sources().into_iter().enumerate();
            let watches = sources.map(|(source, namespace)| {
                let informer = Informer {
                    store: Arc::clone(store),
                    source,
                    namespace,
                    client: self.client.clone(),
                    environment: self.environment.clone(),
                };
                tasks.spawn(supervised(informer))
            });
            Running {
                users: 0,
                watches: watches.collect(),
            }
        });
        feed.users += 1;
    }

    /// One less uses a store; with the last its watches end. True if that was the last.
    pub(crate) fn stop(&self, store: &Store) -> bool {
        let mut inner = self.lock();
        let name = (store.kind.clone(), store.scope.clone());
        let Some(feed) = inner.running.get_mut(&name) else {
            return false;
        };
        feed.users -= 1;
        if feed.users > 0 {
            return false;
        }
        for watch in &feed.watches {
            watch.abort();
        }
        inner.running.remove(&name);
        true
    }

    /// Ends all watches.
    pub(crate) fn end(&self) {
        let mut inner = self.lock();
        inner.tasks.abort_all();
        inner.running.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
