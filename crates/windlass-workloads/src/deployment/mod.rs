//! The Deployment controller: ReplicaSets that come and go with the pod template.
//!
//! A Deployment has one ReplicaSet per version of its template. The **new** one has the template
//! of now; all others are **old**. Each reconcile takes one step from the old to the new
//! ([`rolling`], or all at once for Recreate), or shares out a change of size ([`proportion`]),
//! and then tells what it sees ([`status`]). The ReplicaSets' own changes wake the next step, so
//! that a roll-out is nothing but a sequence of steps, each of which can be the first.

mod condition;
mod history;
pub(crate) mod limits;
mod proportion;
mod revision;
mod rolling;
mod rollout;
mod status;
pub(crate) mod template;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use windlass::{
    Action, Context, Controller, Declare, Event, Reconciler, Result, Watched,
    handle::{Access, Controlled, Raw, Reads, Verb, Writes},
};

use self::rollout::Rollout;
use crate::owner::{self, Claim};
use crate::replicaset::{gone_meanwhile, until};

/// The controller of Deployments.
pub(crate) fn controller() -> Controller<Deployment> {
    Controller::of_existing::<Deployment>()
        .reports_as("deployment-controller")
        .reconciler(Deployments::declare)
}

struct Deployments {
    sets: Controlled<ReplicaSet>,
    /// ReplicaSets that match, though nobody controls them yet: to be adopted.
    _matching: Reads<ReplicaSet>,
    pods: Reads<Pod>,
    written: Writes<Deployment>,
    /// To look past the cache when a name is taken.
    raw: Raw,
}

impl Deployments {
    fn declare(declare: &mut Declare<Deployment>) -> Self {
        Self {
            sets: declare.adopts(),
            _matching: declare.reads(ReplicaSet::selected_by(|deployment: &Deployment| {
                deployment.spec.as_ref().map(|spec| spec.selector.clone())
            })),
            // Only Recreate waits for pods themselves; a rolling update sees them in the status
            // of its ReplicaSets.
            pods: declare.reads(Pod::selected_by(|deployment: &Deployment| {
                let spec = deployment
                    .spec
                    .as_ref()
                    .filter(|_| is_recreate(deployment))?;
                Some(spec.selector.clone())
            })),
            written: declare.writes(Access::none().on("status", [Verb::Update])),
            raw: declare.raw([Access::of::<ReplicaSet>([Verb::Get])]),
        }
    }

    /// The ReplicaSets that are ours, after adopting and releasing what has to be.
    async fn claim(
        &self,
        deployment: &Deployment,
        ctx: &Context<Deployment>,
    ) -> Result<Vec<Arc<ReplicaSet>>> {
        let Some(selector) = deployment
            .spec
            .as_ref()
            .and_then(|spec| owner::selector(&spec.selector))
        else {
            return Ok(Vec::new());
        };
        let mut claimed = Vec::new();
        for set in self.sets.candidates(ctx, selector.clone()).await? {
            match owner::claim(&deployment.metadata, &selector, &set.metadata) {
                Claim::Keep => claimed.push(set),
                Claim::Adopt => claimed.extend(gone_meanwhile(self.sets.adopt(ctx, &set).await)?),
                Claim::Release => {
                    gone_meanwhile(self.sets.release(ctx, &set).await)?;
                }
                Claim::Ignore => {}
            }
        }
        Ok(claimed)
    }

    /// A ReplicaSet as the API server has it now.
    fn live(
        &self,
        ctx: &Context<Deployment>,
        name: &str,
    ) -> impl Future<Output = Result<Option<ReplicaSet>>> + Send + use<> {
        let namespace = ctx.key().namespace().unwrap_or_default();
        let api: Api<ReplicaSet> = Api::namespaced(self.raw.client(ctx), namespace);
        let name = name.to_owned();
        async move { Ok(api.get_opt(&name).await?) }
    }

    /// Whether pods of another version than the new one still exist.
    async fn old_pods_exist(
        &self,
        ctx: &Context<Deployment>,
        rollout: &Rollout<'_>,
    ) -> Result<bool> {
        if rollout.old().iter().any(|set| {
            set.status
                .as_ref()
                .is_some_and(|status| status.replicas > 0)
        }) {
            return Ok(true);
        }
        for old in rollout.old() {
            let uid = old.metadata.uid.as_deref().unwrap_or_default();
            let pods = self.pods.controlled_by(ctx, uid).await?;
            if pods.iter().any(|pod| !crate::pod::has_ended(pod)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes one step, and says what the status is after it.
    async fn step(
        &self,
        ctx: &Context<Deployment>,
        rollout: &mut Rollout<'_>,
    ) -> Result<DeploymentStatus> {
        let now = ctx.clock().now();
        let paused = rollout
            .deployment
            .spec
            .as_ref()
            .and_then(|spec| spec.paused)
            == Some(true);
        if paused || rollout.was_scaled() {
            rollout.sync_new(ctx, &self.sets).await?;
            rollout.scale(ctx, &self.sets).await?;
            if paused {
                rollout.clean_up(ctx, &self.sets).await?;
            }
            let (new, all) = (rollout.new_set(), rollout.all());
            return Ok(status::counted(&rollout.deployment, new, &all, now));
        }

        if is_recreate(&rollout.deployment) {
            rollout.sync_new(ctx, &self.sets).await?;
            let stopped = rollout.stop_old(ctx, &self.sets).await?;
            if !stopped && !self.old_pods_exist(ctx, rollout).await? {
                rollout
                    .ensure_new(ctx, &self.sets, |name| self.live(ctx, name))
                    .await?;
                rollout.grow_new(ctx, &self.sets).await?;
            }
        } else {
            rollout.sync_new(ctx, &self.sets).await?;
            rollout
                .ensure_new(ctx, &self.sets, |name| self.live(ctx, name))
                .await?;
            rollout.roll(ctx, &self.sets).await?;
        }
        let (new, all) = (rollout.new_set(), rollout.all());
        let status = status::rolling_out(&rollout.deployment, new, &all, now);
        if condition::is_complete(&rollout.deployment, &status) {
            rollout.clean_up(ctx, &self.sets).await?;
        }
        Ok(status)
    }

    /// Writes status and revision together, as one request, if either has changed.
    async fn report(
        &self,
        ctx: &Context<Deployment>,
        before: &Deployment,
        mut after: Deployment,
        status: DeploymentStatus,
    ) -> Result<Action> {
        let now = ctx.clock().now();
        let deadline =
            condition::times_out_at(&after, status.conditions.as_deref().unwrap_or_default());
        after.status = Some(status);
        if after != *before {
            self.written.put(ctx, ctx.key(), "status", &after).await?;
        }
        Ok(match deadline {
            // A second later than the deadline, for the deadline itself has not yet passed.
            Some(at) => Action::done().requeue_after(until(at, now) + Duration::from_secs(1)),
            None => Action::done(),
        })
    }
}

impl Reconciler for Deployments {
    type Object = Deployment;

    async fn reconcile(
        &self,
        deployment: &Deployment,
        ctx: &Context<Deployment>,
    ) -> Result<Action> {
        if selects_everything(deployment) {
            let note = "This deployment is selecting all pods. A non-empty selector is required.";
            ctx.event(Event::warning("SelectingAll", note));
            let mut status = deployment.status.clone().unwrap_or_default();
            status.observed_generation = deployment.metadata.generation;
            return self
                .report(ctx, deployment, deployment.clone(), status)
                .await;
        }
        let sets = self.claim(deployment, ctx).await?;
        let now = ctx.clock().now();
        let mut rollout = Rollout::new(deployment, sets);
        if let Some(condition) = condition::pause(deployment, now) {
            rollout.tell(condition);
        }
        let stepped = self.step(ctx, &mut rollout).await;
        match stepped {
            Ok(status) => {
                self.report(ctx, deployment, rollout.deployment, status)
                    .await
            }
            // The status tells of a collision or a refusal, and is worth writing all the same.
            Err(error) => {
                let status = rollout.deployment.status.clone().unwrap_or_default();
                self.report(ctx, deployment, rollout.deployment, status)
                    .await?;
                Err(error)
            }
        }
    }

    async fn terminating(
        &self,
        deployment: &Deployment,
        ctx: &Context<Deployment>,
    ) -> Result<Action> {
        let sets = self.claim(deployment, ctx).await?;
        let rollout = Rollout::new(deployment, sets);
        let (new, all) = (rollout.new_set(), rollout.all());
        let status = status::counted(deployment, new, &all, ctx.clock().now());
        self.report(ctx, deployment, deployment.clone(), status)
            .await?;
        Ok(Action::done())
    }
}

fn is_recreate(deployment: &Deployment) -> bool {
    deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.strategy.as_ref())
        .and_then(|strategy| strategy.type_.as_deref())
        == Some("Recreate")
}

fn selects_everything(deployment: &Deployment) -> bool {
    deployment
        .spec
        .as_ref()
        .and_then(|spec| owner::selector(&spec.selector))
        .is_some_and(|selector| selector.selects_all())
}
