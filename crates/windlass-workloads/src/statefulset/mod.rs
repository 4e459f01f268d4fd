//! The StatefulSet controller: pods with names and storage of their own, in order.
//!
//! Pod `<set>-<ordinal>` comes back under its name and with its claims. Each reconcile finds the
//! revision of the template ([`history`]), decides what to do ([`plan`]), does it, and tells what
//! it saw ([`status`]). What becomes of claims says the [`retention`] policy.

mod ordinal;
mod plan;
mod retention;
mod status;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Error, Event, Key, Reconciler, Result, Watched,
    handle::{Access, Controlled, Delete, Raw, Reads, Verb, Writes},
    watch::Select,
};

use self::plan::{Plan, Step, View};
use self::template::Version;
use crate::cause;
use crate::history::{self, Newest};
use crate::owner::{self, Claim};
use crate::pending::Pending;
use crate::replicaset::{gone_meanwhile, until};

/// The controller of StatefulSets.
pub(crate) fn controller() -> Controller<StatefulSet> {
    Controller::of_existing::<StatefulSet>()
        .reports_as("statefulset-controller")
        .reconciler(StatefulSets::declare)
}

struct StatefulSets {
    pods: Controlled<Pod>,
    pods_written: Writes<Pod>,
    /// Pods that match, though nobody controls them yet: to be adopted.
    _matching: Reads<Pod>,
    revisions: Controlled<ControllerRevision>,
    claims: Reads<PersistentVolumeClaim>,
    claims_written: Writes<PersistentVolumeClaim>,
    status: Writes<StatefulSet>,
    /// To look past the cache when the name of a revision is taken.
    raw: Raw,
    pending: Pending,
}

type Ctx = Context<StatefulSet>;

/// The revisions of a set, in order, and those that matter.
struct Revisions {
    all: Vec<Arc<ControllerRevision>>,
    current: Version,
    update: Version,
    collisions: i32,
}

impl StatefulSets {
    fn declare(declare: &mut Declare<StatefulSet>) -> Self {
        Self {
            pods: declare.adopts(),
            pods_written: declare.writes(Access::to([Verb::Update])),
            _matching: declare.reads(Pod::selected_by(|set: &StatefulSet| {
                set.spec.as_ref().map(|spec| spec.selector.clone())
            })),
            revisions: declare.adopts(),
            claims: declare.reads(PersistentVolumeClaim::triggering_none()),
            claims_written: declare.writes(Access::to([Verb::Create, Verb::Update])),
            status: declare.writes(Access::none().on("status", [Verb::Patch])),
            raw: declare.raw([Access::of::<ControllerRevision>([Verb::Get])]),
            pending: Pending::default(),
        }
    }

    /// The pods that are ours, after adopting and releasing what has to be.
    async fn claim(&self, set: &StatefulSet, ctx: &Ctx) -> Result<Vec<Arc<Pod>>> {
        let spec = set.spec.as_ref();
        let Some(selector) = spec.and_then(|spec| owner::selector(&spec.selector)) else {
            return Ok(Vec::new());
        };
        let mut claimed = Vec::new();
        for pod in self.pods.candidates(ctx, selector.clone()).await? {
            if ordinal::ordinal(set, &pod).is_none() {
                continue;
            }
            match owner::claim(&set.metadata, &selector, &pod.metadata) {
                Claim::Keep => claimed.push(pod),
                Claim::Adopt => claimed.extend(gone_meanwhile(self.pods.adopt(ctx, &pod).await)?),
                Claim::Release => {
                    gone_meanwhile(self.pods.release(ctx, &pod).await)?;
                }
                Claim::Ignore => {}
            }
        }
        Ok(claimed)
    }

    /// The revisions of the set; the newest has the template of now.
    async fn revisions(&self, set: &StatefulSet, ctx: &Ctx) -> Result<Revisions> {
        let Some(spec) = &set.spec else {
            return Err(Error::terminal("a set without a spec"));
        };
        let Some(selector) = owner::selector(&spec.selector) else {
            return Err(Error::terminal("a set whose selector is not valid"));
        };
        let mut all = Vec::new();
        let mut candidates = self.revisions.candidates(ctx, selector.clone()).await?;
        candidates.retain(|revision| owner::matches(&selector, &revision.metadata));
        for revision in candidates {
            match owner::controller_of(&revision.metadata) {
                Some(owner) if Some(&owner.uid) == set.metadata.uid.as_ref() => all.push(revision),
                Some(_) => {}
                None if set.metadata.deletion_timestamp.is_none() => {
                    all.extend(gone_meanwhile(self.revisions.adopt(ctx, &revision).await)?);
                }
                None => all.push(revision),
            }
        }
        history::sort(&mut all);
        let status = set.status.as_ref();
        let mut collisions = status
            .and_then(|status| status.collision_count)
            .unwrap_or(0);
        let data = history::data(&spec.template).map_err(Error::other)?;
        let update = match history::newest(&all, &data) {
            Newest::Is(newest) => Arc::clone(newest),
            Newest::Renumber(old, number) => {
                let patch = json!({ "revision": number });
                Arc::new(self.revisions.patch(ctx, old, patch).await?)
            }
            Newest::Create(number) => {
                let labels = spec
                    .template
                    .metadata
                    .as_ref()
                    .and_then(|meta| meta.labels.as_ref());
                loop {
                    let new = history::revision(&set.metadata, labels, &data, number, collisions);
                    let name = history::name(&new).to_owned();
                    match self.revisions.create(ctx, new).await {
                        Ok(created) => break Arc::new(created),
                        Err(error) if error.is_already_exists() => {
                            if let Some(same) = self.live(ctx, &name).await?
                                && history::holds(&same, &data)
                            {
                                break Arc::new(same);
                            }
                            collisions += 1;
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        };
        let version = |revision: &ControllerRevision| Version {
            name: history::name(revision).to_owned(),
            template: history::template(revision).unwrap_or_else(|| spec.template.clone()),
        };
        let named = status.and_then(|status| status.current_revision.as_deref());
        let current = all.iter().find(|one| Some(history::name(one)) == named);
        Ok(Revisions {
            current: version(current.unwrap_or(&update)),
            update: version(&update),
            all,
            collisions,
        })
    }

    /// A revision as the API server has it now.
    async fn live(&self, ctx: &Ctx, name: &str) -> Result<Option<ControllerRevision>> {
        let namespace = ctx.key().namespace().unwrap_or_default();
        let api: Api<ControllerRevision> = Api::namespaced(self.raw.client(ctx), namespace);
        Ok(api.get_opt(name).await?)
    }

    /// Creates the claims of a pod that are missing.
    async fn create_claims(&self, set: &StatefulSet, ctx: &Ctx, ordinal: i32) -> Result<()> {
        let pod = ordinal::pod_name(set, ordinal);
        for claim in template::claims(set, ordinal) {
            let name = claim.metadata.name.clone().unwrap_or_default();
            match self.claims.get(ctx, name.as_str()).await? {
                Some(there) if there.metadata.deletion_timestamp.is_some() => {
                    return Err(Error::other(format!("pvc {name} is being deleted")));
                }
                Some(_) => {}
                None => {
                    let created = self.claims_written.create(ctx, &claim).await;
                    tell_claim(set, ctx, &name, &pod, created.as_ref().err());
                    created?;
                }
            }
        }
        Ok(())
    }

    /// Gives the claims of a pod the owners its set's policy asks for.
    async fn retain(&self, set: &StatefulSet, ctx: &Ctx, pod: &Pod, ordinal: i32) -> Result<()> {
        for wanted in template::claims(set, ordinal) {
            let name = wanted.metadata.name.unwrap_or_default();
            let Some(claim) = self.claims.get(ctx, name.as_str()).await? else {
                continue;
            };
            if retention::is_anothers(set, &claim, pod) {
                ctx.event(Event::warning(
                    "ConflictingController",
                    format!(
                        "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim"
                    ),
                ));
            }
            if let Some(owners) = retention::owners(set, &claim, pod) {
                // Not after the set was orphaned from its claims: they would go with it.
                if owners.len() > retention::references(&claim).len() {
                    self.pods.confirm_owner(ctx).await?;
                }
                let mut claim = Arc::unwrap_or_clone(claim);
                claim.metadata.owner_references = Some(owners);
                self.claims_written.update(ctx, &claim).await?;
            }
        }
        Ok(())
    }

    async fn step(&self, set: &StatefulSet, ctx: &Ctx, step: &Step) -> Result<()> {
        match step {
            Step::Create(pod, ordinal) => {
                let created = self.create(set, ctx, pod, *ordinal).await;
                tell(set, ctx, "Create", pod, created.as_ref().err());
                created
            }
            Step::Claim(pod, ordinal) => {
                self.create_claims(set, ctx, *ordinal).await?;
                self.retain(set, ctx, pod, *ordinal).await
            }
            Step::Repair(pod, ordinal) => {
                let mut repaired = Pod::clone(pod);
                template::identify(set, &mut repaired, *ordinal);
                template::store(set, &mut repaired, *ordinal);
                self.create_claims(set, ctx, *ordinal).await?;
                self.retain(set, ctx, pod, *ordinal).await?;
                if repaired == **pod {
                    return Ok(());
                }
                let updated = self.pods_written.update(ctx, &repaired).await;
                tell(set, ctx, "Update", pod, updated.as_ref().err());
                updated.map(drop)
            }
            Step::Retain(pod, ordinal) => self.retain(set, ctx, pod, *ordinal).await,
            Step::Delete(pod) => {
                let deleted = self.pods.delete(ctx, pod, Delete::background()).await;
                tell(set, ctx, "Delete", pod, deleted.as_ref().err());
                deleted
            }
        }
    }

    async fn create(&self, set: &StatefulSet, ctx: &Ctx, pod: &Pod, ordinal: i32) -> Result<()> {
        self.create_claims(set, ctx, ordinal).await?;
        let created = self.pods.create(ctx, pod.clone()).await?;
        self.retain(set, ctx, &created, ordinal).await
    }

    /// Deletes the revisions that nobody will go back to.
    async fn truncate(
        &self,
        set: &StatefulSet,
        ctx: &Ctx,
        revisions: &Revisions,
        pods: &[Arc<Pod>],
    ) -> Result<()> {
        let named = [
            revisions.current.name.as_str(),
            revisions.update.name.as_str(),
        ];
        let used = pods.iter().map(|pod| template::revision(pod));
        let live: BTreeSet<&str> = used.chain(named).collect();
        let limit = set
            .spec
            .as_ref()
            .and_then(|spec| spec.revision_history_limit);
        for revision in history::surplus(&revisions.all, &live, limit) {
            self.revisions
                .delete(ctx, revision, Delete::background())
                .await?;
        }
        Ok(())
    }

    async fn report(
        &self,
        set: &StatefulSet,
        ctx: &Ctx,
        revisions: &Revisions,
        pods: &[Arc<Pod>],
        updated: i32,
    ) -> Result<()> {
        let names = (
            revisions.current.name.as_str(),
            revisions.update.name.as_str(),
        );
        let now = ctx.clock().now();
        let status = status::status(set, names, revisions.collisions, pods, updated, now);
        self.status.status(ctx, set, status).await?;
        Ok(())
    }

    fn next(&self, set: &StatefulSet, ctx: &Ctx, plan: &Plan, pods: &[Arc<Pod>]) -> Action {
        let now = ctx.clock().now();
        if plan.waits_for_claim {
            let what = "wait for a claim to go";
            return self.pending.after(ctx, Duration::from_secs(1), what);
        }
        if let Some(at) = status::next_available(set, pods, now) {
            let what = "wait for a pod to be available";
            return self.pending.after(ctx, until(at, now), what);
        }
        self.pending.clear(ctx.key());
        Action::done()
    }
}

impl Reconciler for StatefulSets {
    type Object = StatefulSet;

    async fn reconcile(&self, set: &StatefulSet, ctx: &Ctx) -> Result<Action> {
        let revisions = self.revisions(set, ctx).await?;
        let pods = self.claim(set, ctx).await?;
        let claims = if template::claim_templates(set).is_empty() {
            BTreeMap::new()
        } else {
            let claims = self
                .claims
                .list(ctx, Select::own_namespace())
                .await?
                .into_iter();
            claims
                .filter_map(|claim| Some((claim.metadata.name.clone()?, claim)))
                .collect()
        };
        let plan = plan::plan(&View {
            set,
            current: &revisions.current,
            update: &revisions.update,
            pods: &pods,
            claims: &claims,
            now: ctx.clock().now(),
        });
        let mut failed = None;
        for step in &plan.steps {
            match self.step(set, ctx, step).await {
                Err(error) if cause::namespace_is_terminating(&error) => break,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
                Ok(()) => {}
            }
        }
        let updated = if failed.is_none() { plan.updated } else { 0 };
        self.report(set, ctx, &revisions, &pods, updated).await?;
        self.truncate(set, ctx, &revisions, &pods).await?;
        match failed {
            Some(error) => Err(error),
            None => Ok(self.next(set, ctx, &plan, &pods)),
        }
    }

    async fn terminating(&self, set: &StatefulSet, ctx: &Ctx) -> Result<Action> {
        let pods = self.claim(set, ctx).await?;
        let revisions = match self.revisions(set, ctx).await {
            Ok(revisions) => revisions,
            // In a namespace that is going there are no new revisions, and nobody needs them.
            Err(error) if cause::namespace_is_terminating(&error) => return Ok(Action::done()),
            Err(error) => return Err(error),
        };
        self.report(set, ctx, &revisions, &pods, 0).await?;
        Ok(Action::done())
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        self.pending.clear(key);
        Ok(())
    }
}

/// Tells what became of a pod.
fn tell(set: &StatefulSet, ctx: &Ctx, verb: &str, pod: &Pod, error: Option<&Error>) {
    let set = set.metadata.name.as_deref().unwrap_or_default();
    let pod = pod.metadata.name.as_deref().unwrap_or_default();
    match error {
        None => ctx.event(Event::normal(
            format!("Successful{verb}"),
            format!("{verb} Pod {pod} in StatefulSet {set} successful"),
        )),
        Some(error) if error.is_already_exists() => {}
        Some(error) => ctx.event(Event::warning(
            format!("Failed{verb}"),
            format!("{verb} Pod {pod} in StatefulSet {set} failed error: {error}"),
        )),
    }
}

/// Tells what became of a claim.
fn tell_claim(set: &StatefulSet, ctx: &Ctx, claim: &str, pod: &str, error: Option<&Error>) {
    let set = set.metadata.name.as_deref().unwrap_or_default();
    match error {
        None => ctx.event(Event::normal(
            "SuccessfulCreate",
            format!("Create Claim {claim} Pod {pod} in StatefulSet {set} success"),
        )),
        Some(error) if error.is_already_exists() => {}
        Some(error) => ctx.event(Event::warning(
            "FailedCreate",
            format!(
                "Create Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {error}"
            ),
        )),
    }
}
