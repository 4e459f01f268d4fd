//! Long work, away from the threads that serve others.
//!
//! Reading, comparing, validating and encoding a few MiB takes milliseconds in which a worker of the
//! runtime serves nobody else: the leases of a cluster wait behind one definition. So a request
//! that is large, or about much that is stored, is polled in [`tokio::task::block_in_place`], which
//! first hands the other tasks of the worker to another thread. Only its own steps are: while it
//! waits for the disk or a webhook, it holds no thread.
//!
//! This is done for requests that came over a socket, and for those of clients in the same process
//! that share its threads, on a runtime of several threads. Where a test's clock stands still, a
//! request stays on the thread of its client: there the order of everything must replay.

use std::future::Future;
use std::pin::Pin;

use tokio::runtime::{Handle, RuntimeFlavor};

/// What is read and stored for a request, in bytes, up to which it is short work.
const LIGHT: usize = 32 * 1024;

/// Whether long work goes aside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aside(bool);

impl Aside {
    /// All work stays on its thread.
    pub(crate) fn never() -> Self {
        Self(false)
    }

    /// Long work goes aside, if the current runtime has more than one thread.
    pub(crate) fn of_this_runtime() -> Self {
        let handle = Handle::try_current();
        Self(handle.is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread))
    }

    /// The same for work of this size.
    pub(crate) fn for_bytes(self, bytes: usize) -> Self {
        Self(self.0 && bytes > LIGHT)
    }

    /// Runs a future, each poll of it aside.
    pub(crate) async fn run<F: Future>(self, mut future: Pin<&mut F>) -> F::Output {
        std::future::poll_fn(|cx| self.now(|| future.as_mut().poll(cx))).await
    }

    /// Does something aside.
    pub(crate) fn now<T>(self, work: impl FnOnce() -> T) -> T {
        if self.0 {
            tokio::task::block_in_place(work)
        } else {
            work()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;

    use super::*;

    /// The one worker of the runtime is busy with long work that only ends when another task has
    /// run: on the worker itself it would wait for ever.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_while_long_work_is_done() {
        let (done, wait) = mpsc::channel();
        let (begun, begins) = mpsc::channel();
        let long = tokio::spawn(async move {
            let aside = Aside::of_this_runtime().for_bytes(LIGHT + 1);
            let work = async move {
                begun.send(()).unwrap();
                wait.recv().unwrap();
            };
            aside.run(pin!(work)).await;
        });
        let other = tokio::spawn(async move {
            tokio::task::yield_now().await;
            tokio::task::block_in_place(|| begins.recv().unwrap());
            done.send(()).unwrap();
        });
        other.await.unwrap();
        long.await.unwrap();
    }

    #[tokio::test]
    async fn work_stays_on_the_only_thread_and_light_work_everywhere() {
        assert!(!Aside::of_this_runtime().for_bytes(usize::MAX).0);
        assert!(!Aside(true).for_bytes(LIGHT).0);
        let never = Aside::never().for_bytes(usize::MAX);
        assert_eq!(never.run(pin!(async { 1 })).await, 1);
    }
}
