//! Background tasks of an operator.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{Error, Result, handle::Access, testing::Environment};

const FIRST_DELAY: Duration = Duration::from_millis(100);
const LAST_DELAY: Duration = Duration::from_secs(30);

/// What a background task is given.
#[derive(Clone)]
pub struct TaskContext {
    /// The client, with the operator's identity.
    pub client: kube::Client,
    /// Clock, randomness and activity.
    pub environment: Environment,
    /// Cancelled when the operator stops; a task should end soon after.
    pub stopping: CancellationToken,
}

/// A background task, declared.
pub(crate) struct Task {
    pub(super) name: String,
    pub(super) access: Vec<Access>,
    pub(super) run: Box<dyn Fn(TaskContext) -> BoxFuture<'static, Result<()>> + Send + Sync>,
}

impl Task {
    /// Whether all that it may do says on which kind.
    pub(super) fn names_resources(&self) -> bool {
        self.access.iter().all(Access::names_resource)
    }
}

/// Runs a task, again after every failure, until it is done or the operator stops.
pub(super) async fn supervise(task: Arc<Task>, ctx: TaskContext, leading: CancellationToken) {
    tokio::select! {
        biased;
        () = ctx.stopping.cancelled() => return,
        () = leading.cancelled() => {}
    }
    let mut delay = FIRST_DELAY;
    loop {
        let started = Instant::now();
        let run = AssertUnwindSafe((task.run)(ctx.clone())).catch_unwind();
        let error = match run.await {
            Ok(Ok(())) => {
                debug!(task = task.name, "done");
                return;
            }
            Ok(Err(error)) => error,
            Err(_) => Error::Panic {
                message: format!("task {}", task.name),
            },
        };
        if ctx.stopping.is_cancelled() {
            return;
        }
        // A run that lasted was a good one.
        if started.elapsed() > LAST_DELAY {
            delay = FIRST_DELAY;
        }
        warn!(task = task.name, %error, "failed, starting again in {delay:?}");
        let at = Instant::now() + delay;
        let due = ctx
            .environment
            .activity
            .due(at, format!("task {}: {error}", task.name));
        tokio::select! {
            biased;
            () = ctx.stopping.cancelled() => return,
            () = tokio::time::sleep_until(at) => {}
        }
        drop(due);
        delay = (delay * 2).min(LAST_DELAY);
    }
}
