//! What goes on beside a running container: its first hook, its probes, and its last hook.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::handler::Target;
use crate::hook;
use crate::probe;
use crate::runtime::{Note, Report, Reports, Runtime};

/// What a container gets at least once its hook has used up its time.
const LEAST: Duration = Duration::from_secs(2);

/// The tasks beside the containers of one pod; they end with it.
#[derive(Debug, Default)]
pub(super) struct Attendants {
    watching: BTreeMap<String, Ends>,
    stopping: BTreeMap<String, Ends>,
}

/// A task that ends when nobody wants it any more.
#[derive(Debug)]
struct Ends(AbortHandle);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Attendants {
    /// Attends to a container that has just started, or that has been running all along.
    pub(super) fn watch<R: Runtime>(
        &mut self,
        target: Target<R>,
        run: i32,
        adopted: bool,
        reports: Reports,
    ) {
        let name = target.container.name.clone();
        let task = tokio::spawn(async move {
            let hook = post_start(&target.container).filter(|_| !adopted);
            if let Some(hook) = hook {
                let outcome = hook::run(hook, &target).await;
                let container = target.container.name.clone();
                let failed = outcome.is_err();
                reports.report(Report::Hooked {
                    container,
                    run,
                    outcome,
                });
                if failed {
                    return;
                }
            }
            probe::watch(&target, run, &reports).await;
        });
        self.watching.insert(name, Ends(task.abort_handle()));
    }

    /// Asks a container to end; one with a hook runs that first, and the time it takes counts.
    pub(super) fn stop<R: Runtime>(
        &mut self,
        target: Target<R>,
        grace: Duration,
        reports: Reports,
    ) {
        let name = target.container.name.clone();
        let first = self.stopping.remove(&name).is_none();
        let hook = pre_stop(&target.container).cloned();
        let Some(hook) = hook.filter(|_| first && !grace.is_zero()) else {
            target.runtime.stop(&target.uid, &name, grace);
            return;
        };
        let task = tokio::spawn(async move {
            let begun = Instant::now();
            let outcome = tokio::time::timeout(grace, hook::run(&hook, &target)).await;
            let failure = match outcome {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some(format!("it took longer than {}s", grace.as_secs())),
            };
            let container = &target.container.name;
            if let Some(message) = failure {
                let message = format!("PreStopHook of container {container} failed: {message}");
                let note = Note::warning("FailedPreStopHook", message);
                reports.report(Report::Note(note));
            }
            let left = grace.saturating_sub(begun.elapsed()).max(LEAST);
            target.runtime.stop(&target.uid, container, left);
        });
        self.stopping.insert(name, Ends(task.abort_handle()));
    }

    /// Nothing goes on beside a container that has ended.
    pub(super) fn ended(&mut self, container: &str) {
        self.watching.remove(container);
        self.stopping.remove(container);
    }
}

/// What is to be done right after the start.
pub(super) fn post_start(container: &Container) -> Option<&LifecycleHandler> {
    container.lifecycle.as_ref()?.post_start.as_ref()
}

fn pre_stop(container: &Container) -> Option<&LifecycleHandler> {
    container.lifecycle.as_ref()?.pre_stop.as_ref()
}
