//! [`LateController`]: a controller that is started while the operator runs, and may end before it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Signals;
use crate::{
    cache::Store,
    controller::{AnyController, Bound, Shared},
};

/// The tasks of controllers that were started late: they end with the operator.
#[derive(Clone, Default)]
pub(crate) struct Late(Arc<Mutex<JoinSet<()>>>);

impl Late {
    /// Waits until all have ended.
    pub(super) async fn ended(&self) {
        loop {
            let mut tasks = std::mem::take(&mut *self.lock());
            if tasks.is_empty() {
                return;
            }
            while tasks.join_next().await.is_some() {}
        }
    }

    /// Ends all at once.
    pub(super) fn abort(&self) {
        self.lock().abort_all();
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A controller that runs.
pub(crate) struct LateController {
    stopping: CancellationToken,
    ended: CancellationToken,
}

impl LateController {
    /// Wires a controller up and runs it.
    pub(crate) fn start(shared: &Arc<Shared>, controller: &AnyController) -> Self {
        let Bound { run, stores, undo } = controller.bind(shared);
        let mut used: Vec<Arc<Store>> = Vec::new();
        for store in stores {
            if !used.iter().any(|one| Arc::ptr_eq(one, &store)) {
                shared.feeds.start(&store);
                used.push(store);
            }
        }
        // What other controllers watch is there already.
        undo.replay();
        let signals = Signals {
            leading: shared.signals.leading.clone(),
            stopping: shared.signals.stopping.child_token(),
        };
        let (stopping, ended) = (signals.stopping.clone(), CancellationToken::new());
        let (end, running) = (ended.clone().drop_guard(), run(signals));
        let (feeds, caches) = (Arc::clone(&shared.feeds), Arc::clone(&shared.caches));
        let mut tasks = shared.late.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let end = end;
            running.await;
            undo.undo();
            for store in used {
                if feeds.stop(&store) {
                    caches.forget(&store.kind, &store.scope);
                }
            }
            drop(end);
        });
        Self { stopping, ended }
    }

    /// Ends it, and waits for the reconciles under way.
    pub(crate) async fn stop(self) {
        self.stopping.cancel();
        self.ended.cancelled().await;
    }

    /// Ends it after the reconciles under way.
    pub(crate) fn cancel(self) {
        self.stopping.cancel();
    }
}
