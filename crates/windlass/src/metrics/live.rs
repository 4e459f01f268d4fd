//! [`Live`]: what is read when somebody asks, rather than counted when it happens.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use crate::{cache::Caches, event::Counts, queue::Queue};

/// The queues, caches and events of a running operator.
#[derive(Default)]
pub(crate) struct Live(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    queues: Vec<(Arc<str>, Weak<Queue>)>,
    caches: Vec<Weak<Caches>>,
    events: Arc<Counts>,
}

impl Live {
    pub(crate) fn add_queue(&self, controller: &Arc<str>, queue: &Arc<Queue>) {
        let mut inner = self.lock();
        inner.queues.retain(|(_, queue)| queue.strong_count() > 0);
        inner
            .queues
            .push((Arc::clone(controller), Arc::downgrade(queue)));
    }

    pub(crate) fn add_caches(&self, caches: &Arc<Caches>) {
        let mut inner = self.lock();
        inner.caches.retain(|caches| caches.strong_count() > 0);
        inner.caches.push(Arc::downgrade(caches));
    }

    pub(crate) fn queues(&self) -> Vec<(Arc<str>, Arc<Queue>)> {
        let inner = self.lock();
        let queues = inner.queues.iter();
        queues
            .filter_map(|(name, queue)| Some((Arc::clone(name), queue.upgrade()?)))
            .collect()
    }

    pub(crate) fn caches(&self) -> Vec<Arc<Caches>> {
        let inner = self.lock();
        inner.caches.iter().filter_map(Weak::upgrade).collect()
    }

    /// What becomes of events.
    pub(crate) fn events(&self) -> Arc<Counts> {
        Arc::clone(&self.lock().events)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Live")
    }
}
