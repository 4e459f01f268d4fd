//! [`Workers`]: the threads on which an operator reconciles.

use std::{num::NonZero, thread, time::Duration};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    time::{Instant, sleep, timeout},
};
use tracing::{info, warn};

use crate::{Error, Result, run::DebugInfo};

/// How often they are looked at, and how long they may stand still before that is told.
const LOOK: Duration = Duration::from_secs(5);

/// As many threads as there are cores, less the one that keeps the lease; at least one.
pub(super) struct Workers {
    handle: Handle,
    /// Until it is dropped.
    runtime: Option<Runtime>,
}

impl Workers {
    pub(super) fn start() -> Result<Self> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let runtime = Builder::new_multi_thread()
            .worker_threads(cores.saturating_sub(1).max(1))
            .enable_all()
            .build();
        let runtime = runtime.map_err(Error::other)?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Tells, without end, when every thread is blocked: code that waits without `await` is not
    /// seen in tests, and in production all objects wait with it.
    pub(super) async fn watch(&self, operator: DebugInfo) {
        loop {
            sleep(LOOK).await;
            let asked = Instant::now();
            let mut answer = self.handle.spawn(async {});
            if timeout(LOOK, &mut answer).await.is_ok() {
                continue;
            }
            let running = operator.running().join(", ");
            warn!(
                running,
                "no reconcile moves on: all threads are blocked; what computes or waits for long \
                 without `await` belongs into tokio::task::spawn_blocking"
            );
            let _ = answer.await;
            let seconds = asked.elapsed().as_secs();
            info!("reconciles move on again, after {seconds} s");
        }
    }
}

impl Drop for Workers {
    /// Waits for none of them: the process ends.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
