//! Pods whose Job is gone or has ended: nobody counts them any more, so nothing holds them.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Reconciler, Result, Watched,
    handle::{Access, Reads, Verb, Writes},
};

use super::{condition, pods};
use crate::owner;

/// The controller that lets go of pods.
pub(crate) fn controller() -> Controller<Pod> {
    Controller::of_existing::<Pod>()
        .named("job-orphans")
        .reconciler(Orphans::declare)
}

struct Orphans {
    jobs: Reads<Job>,
    written: Writes<Pod>,
}

impl Orphans {
    fn declare(declare: &mut Declare<Pod>) -> Self {
        Self {
            jobs: declare.reads(Job::referenced_by(|pod: &Pod| {
                let controller = owner::controller_of(&pod.metadata)?;
                (controller.kind == "Job" && pods::is_tracked(pod)).then(|| controller.name.clone())
            })),
            written: declare.writes(Access::to([Verb::Patch])),
        }
    }

    async fn let_go(&self, pod: &Pod, ctx: &Context<Pod>) -> Result<Action> {
        if !pods::is_tracked(pod) {
            return Ok(Action::done());
        }
        if let Some(controller) = owner::controller_of(&pod.metadata) {
            if controller.kind != "Job" || controller.api_version != "batch/v1" {
                return Ok(Action::done());
            }
            let job = self.jobs.get(ctx, controller.name.as_str()).await?;
            let job = job.filter(|job| job.metadata.uid.as_ref() == Some(&controller.uid));
            if job.is_some_and(|job| counts(&job)) {
                return Ok(Action::done());
            }
        }
        let patch = json!({ "metadata": {
            "finalizers": pods::untracked(pod),
            "uid": pod.metadata.uid,
            "resourceVersion": pod.metadata.resource_version,
        } });
        match self.written.patch(ctx, pod, patch).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(Action::done()),
        }
    }
}

/// Whether a Job still counts its pods, or another controller does.
fn counts(job: &Job) -> bool {
    let managed_by = job
        .spec
        .as_ref()
        .and_then(|spec| spec.managed_by.as_deref());
    managed_by.is_some_and(|name| name != super::NAME) || condition::finished(job).is_none()
}

impl Reconciler for Orphans {
    type Object = Pod;

    async fn reconcile(&self, pod: &Pod, ctx: &Context<Pod>) -> Result<Action> {
        self.let_go(pod, ctx).await
    }

    async fn terminating(&self, pod: &Pod, ctx: &Context<Pod>) -> Result<Action> {
        self.let_go(pod, ctx).await
    }
}
