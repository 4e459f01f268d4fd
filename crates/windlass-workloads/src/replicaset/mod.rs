//! The ReplicaSet controller: as many pods as asked for.
//!
//! A ReplicaSet claims the pods of its namespace that match its selector and that nobody else
//! controls ([`owner`](crate::owner)), counts the active ones, and creates or deletes the
//! difference: creations in growing [`batches`], deletions in the order of [`ranking`]. Its
//! [`status`] says how many there are and how far they have come.

pub(crate) mod batches;
pub(crate) mod ranking;
mod status;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::{
    Action, Context, Controller, Declare, Error, Event, Key, Kind, Reconciler, Result, Watched,
    handle::{Access, Controlled, Delete, Reads, Verb, Writes},
};

use self::status::Failure;
use crate::owner::{self, Claim};
use crate::pending::Pending;
use crate::{cause, pod};

/// The controller of ReplicaSets.
pub(crate) fn controller() -> Controller<ReplicaSet> {
    Controller::of_existing::<ReplicaSet>()
        .reports_as("replicaset-controller")
        .reconciler(ReplicaSets::declare)
}

struct ReplicaSets {
    pods: Controlled<Pod>,
    /// Pods that match, though nobody controls them yet: to be adopted.
    matching: Reads<Pod>,
    sets: Reads<ReplicaSet>,
    status: Writes<ReplicaSet>,
    pending: Pending,
}

impl ReplicaSets {
    fn declare(declare: &mut Declare<ReplicaSet>) -> Self {
        Self {
            pods: declare.adopts(),
            matching: declare.reads(Pod::selected_by(|set: &ReplicaSet| {
                set.spec.as_ref().map(|spec| spec.selector.clone())
            })),
            sets: declare.reads(ReplicaSet::triggering_none()),
            status: declare.writes(Access::none().on("status", [Verb::Patch])),
            pending: Pending::default(),
        }
    }

    /// The pods that are ours, after adopting and releasing what has to be.
    async fn claim(&self, set: &ReplicaSet, ctx: &Context<ReplicaSet>) -> Result<Vec<Arc<Pod>>> {
        let Some(selector) = set
            .spec
            .as_ref()
            .and_then(|spec| owner::selector(&spec.selector))
        else {
            return Ok(Vec::new());
        };
        let mut claimed = Vec::new();
        for pod in self.pods.candidates(ctx, selector.clone()).await? {
            // A pod that has ended is neither adopted nor released: it will not count either way.
            let ended = pod::has_ended(&pod);
            match owner::claim(&set.metadata, &selector, &pod.metadata) {
                Claim::Keep => claimed.push(pod),
                Claim::Adopt if !ended => {
                    claimed.extend(gone_meanwhile(self.pods.adopt(ctx, &pod).await)?);
                }
                Claim::Release if !ended => {
                    gone_meanwhile(self.pods.release(ctx, &pod).await)?;
                }
                Claim::Adopt | Claim::Release | Claim::Ignore => {}
            }
        }
        Ok(claimed)
    }

    /// The active pods of every ReplicaSet that has the same controller as this one.
    async fn kin(&self, set: &ReplicaSet, ctx: &Context<ReplicaSet>) -> Result<Vec<Arc<Pod>>> {
        let Some(controller) = owner::controller_of(&set.metadata) else {
            return Ok(Vec::new());
        };
        let mut pods = Vec::new();
        for other in self.sets.controlled_by(ctx, &controller.uid).await? {
            let uid = other.metadata.uid.as_deref().unwrap_or_default();
            pods.extend(self.matching.controlled_by(ctx, uid).await?);
        }
        pods.retain(|pod| pod::is_active(pod));
        pods.sort_by_cached_key(|pod| Key::of(pod.as_ref()));
        Ok(pods)
    }

    /// Creates `count` pods, in growing batches; stops at the first batch with a failure.
    async fn create(
        &self,
        set: &ReplicaSet,
        ctx: &Context<ReplicaSet>,
        count: usize,
    ) -> Result<()> {
        for size in batches::sizes(count) {
            let attempts = (0..size).map(|_| self.pods.create(ctx, new_pod(set)));
            let mut failed = None;
            for attempt in join_all(attempts).await {
                match attempt {
                    Ok(pod) => {
                        ctx.event(Event::normal("SuccessfulCreate", created(&pod)));
                    }
                    // The namespace is going, and everything in it: not worth telling.
                    Err(error) if cause::namespace_is_terminating(&error) => return Ok(()),
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                ctx.event(Event::warning(
                    "FailedCreate",
                    format!("Error creating: {error}"),
                ));
                return Err(error);
            }
        }
        Ok(())
    }

    async fn delete(&self, ctx: &Context<ReplicaSet>, victims: &[&Pod]) -> Result<()> {
        let attempts = victims
            .iter()
            .map(|pod| self.pods.delete(ctx, pod, Delete::background()));
        let mut failed = None;
        for (attempt, pod) in join_all(attempts).await.into_iter().zip(victims) {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            match attempt {
                Ok(()) => ctx.event(Event::normal(
                    "SuccessfulDelete",
                    format!("Deleted pod: {name}"),
                )),
                Err(error) => {
                    ctx.event(Event::warning(
                        "FailedDelete",
                        format!("Error deleting: {error}"),
                    ));
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Creates or deletes pods until the wanted number is there.
    async fn manage(
        &self,
        set: &ReplicaSet,
        ctx: &Context<ReplicaSet>,
        claimed: &[Arc<Pod>],
        now: Timestamp,
    ) -> Result<(), (Failure, Error)> {
        let claimed = claimed.iter().map(Arc::as_ref);
        let active: Vec<&Pod> = claimed.filter(|pod| pod::is_active(pod)).collect();
        let wanted = set
            .spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or(1);
        let wanted = usize::try_from(wanted).unwrap_or(0);
        if active.len() < wanted {
            let missing = wanted - active.len();
            return self
                .create(set, ctx, missing)
                .await
                .map_err(|error| (Failure::Create(error.to_string()), error));
        }
        let surplus = (active.len() - wanted).min(batches::BURST);
        if surplus == 0 {
            return Ok(());
        }
        let failed = |error: Error| (Failure::Delete(error.to_string()), error);
        let kin = self.kin(set, ctx).await.map_err(failed)?;
        let kin: Vec<&Pod> = kin.iter().map(Arc::as_ref).collect();
        let victims = ranking::to_delete(&active, &kin, surplus, now);
        self.delete(ctx, &victims).await.map_err(failed)
    }

    async fn report(
        &self,
        set: &ReplicaSet,
        ctx: &Context<ReplicaSet>,
        claimed: &[Arc<Pod>],
        failure: Option<&Failure>,
    ) -> Result<Action> {
        let now = ctx.clock().now();
        let claimed: Vec<&Pod> = claimed.iter().map(Arc::as_ref).collect();
        let status = status::status(set, &claimed, failure, now);
        self.status.status(ctx, set, status).await?;
        if let Some(at) = status::next_available(set, &claimed, now) {
            let what = "wait for a pod to be available";
            return Ok(self.pending.after(ctx, until(at, now), what));
        }
        self.pending.clear(ctx.key());
        Ok(Action::done())
    }
}

impl Reconciler for ReplicaSets {
    type Object = ReplicaSet;

    async fn reconcile(&self, set: &ReplicaSet, ctx: &Context<ReplicaSet>) -> Result<Action> {
        let claimed = self.claim(set, ctx).await?;
        let managed = self.manage(set, ctx, &claimed, ctx.clock().now()).await;
        // The status tells of the pods that were there before: those just created or deleted wake
        // us again, each as it appears or goes.
        let failure = managed.as_ref().err().map(|(failure, _)| failure);
        let next = self.report(set, ctx, &claimed, failure).await?;
        managed.map_err(|(_, error)| error)?;
        Ok(next)
    }

    async fn terminating(&self, set: &ReplicaSet, ctx: &Context<ReplicaSet>) -> Result<Action> {
        let claimed = self.claim(set, ctx).await?;
        self.report(set, ctx, &claimed, None).await
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        self.pending.clear(key);
        Ok(())
    }
}

/// A pod made from the template; its owner is set as it is created.
fn new_pod(set: &ReplicaSet) -> Pod {
    let template = set
        .spec
        .as_ref()
        .and_then(|spec| spec.template.clone())
        .unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!(
                "{}-",
                set.metadata.name.as_deref().unwrap_or_default()
            )),
            namespace: set.metadata.namespace.clone(),
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizers: metadata.finalizers,
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

fn created(pod: &Pod) -> String {
    format!(
        "Created pod: {}",
        pod.metadata.name.as_deref().unwrap_or_default()
    )
}

/// What was written, shared as what is read, or nothing if the object went before it could be.
pub(crate) fn gone_meanwhile<T: Kind>(written: Result<T>) -> Result<Option<Arc<T>>> {
    match written {
        Ok(object) => Ok(Some(Arc::new(object))),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The time from `now` to `at`; nought when it is past.
pub(crate) fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}
