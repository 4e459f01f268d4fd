//! One roll-out in motion: the Deployment, its ReplicaSets, and the writes that move them.
//!
//! What to write is decided elsewhere; here it is written, and what the API server answered takes
//! the place of what was read, so that the status at the end tells of the latest.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use windlass::{
    Context, Error, Event, Result,
    handle::{Controlled, Delete},
};

use super::condition::{self, PROGRESSING};
use super::limits::Limits;
use super::proportion::{self, Share};
use super::rolling::{self, Resize, Size};
use super::status::replicas;
use super::template::{self, HASH_LABEL};
use super::{history, is_recreate, revision};
use crate::{cause, owner};

/// A Deployment and its ReplicaSets, oldest first.
pub(crate) struct Rollout<'a> {
    /// The Deployment with what is to be written about it: its revision and its status.
    pub deployment: Deployment,
    given: &'a Deployment,
    sets: Vec<Arc<ReplicaSet>>,
    new: Option<usize>,
}

type Ctx = Context<Deployment>;

impl<'a> Rollout<'a> {
    pub(crate) fn new(deployment: &'a Deployment, mut sets: Vec<Arc<ReplicaSet>>) -> Self {
        sets.sort_by(|a, b| age(a).cmp(&age(b)));
        let mut rollout = Self {
            deployment: deployment.clone(),
            given: deployment,
            sets,
            new: None,
        };
        rollout.new = rollout.sets.iter().position(|set| rollout.is_new(set));
        rollout
    }

    fn is_new(&self, set: &ReplicaSet) -> bool {
        let wanted = self.given.spec.as_ref().map(|spec| &spec.template);
        let has = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
        wanted
            .zip(has)
            .is_some_and(|(wanted, has)| template::same(wanted, has))
    }

    /// The ReplicaSet that has the template of now.
    pub(crate) fn new_set(&self) -> Option<&ReplicaSet> {
        self.new
            .and_then(|index| self.sets.get(index))
            .map(Arc::as_ref)
    }

    /// All others, oldest first.
    pub(crate) fn old(&self) -> Vec<&ReplicaSet> {
        let new = self.new;
        self.sets
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != new)
            .map(|(_, set)| set.as_ref())
            .collect()
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<&ReplicaSet> {
        self.sets.iter().map(Arc::as_ref).collect()
    }

    fn active(&self) -> impl Iterator<Item = (usize, &Arc<ReplicaSet>)> {
        self.sets
            .iter()
            .enumerate()
            .filter(|(_, set)| replicas(set) > 0)
    }

    fn limits(&self) -> Limits {
        Limits::of(self.given)
    }

    /// Whether the Deployment asks for another number of pods than when its ReplicaSets were last
    /// sized.
    pub(crate) fn was_scaled(&self) -> bool {
        let desired = self.limits().desired;
        self.active()
            .filter_map(|(_, set)| revision::desired_replicas(set))
            .any(|sized_for| sized_for != desired)
    }

    /// Sets a condition, to be written with the status.
    pub(crate) fn tell(&mut self, told: DeploymentCondition) {
        let status = self.deployment.status.get_or_insert_default();
        condition::set(status.conditions.get_or_insert_default(), told);
    }

    fn tell_progress(&mut self, ctx: &Ctx, status: &str, reason: &str, message: String) {
        if condition::progress_deadline(self.given).is_some() {
            let now = ctx.clock().now();
            self.tell(condition::condition(
                PROGRESSING,
                status,
                reason,
                message,
                now,
            ));
        }
    }

    fn has_told_progress(&self) -> bool {
        let status = self.deployment.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref());
        condition::find(conditions.unwrap_or_default(), PROGRESSING).is_some()
    }

    fn set_revision(&mut self, newest: String) {
        self.deployment
            .metadata
            .annotations
            .get_or_insert_default()
            .insert(revision::REVISION.to_owned(), newest);
    }

    /// Brings the annotations and minReadySeconds of the new ReplicaSet, if there is one, up to
    /// date, and the Deployment's revision with them.
    pub(crate) async fn sync_new(
        &mut self,
        ctx: &Ctx,
        sets: &Controlled<ReplicaSet>,
    ) -> Result<()> {
        let (Some(index), newest) = (self.new, revision::next(&self.old())) else {
            return Ok(());
        };
        let set = &self.sets[index];
        let has = set.metadata.annotations.clone().unwrap_or_default();
        let wanted = revision::annotations(self.given, &has, newest);
        let min_ready = |seconds: Option<i32>| seconds.unwrap_or(0);
        let wanted_min = min_ready(
            self.given
                .spec
                .as_ref()
                .and_then(|spec| spec.min_ready_seconds),
        );
        let has_min = min_ready(set.spec.as_ref().and_then(|spec| spec.min_ready_seconds));
        if has != wanted || has_min != wanted_min {
            let patch = json!({
                "metadata": { "annotations": wanted },
                "spec": { "minReadySeconds": wanted_min },
            });
            self.sets[index] = Arc::new(sets.patch(ctx, set, patch).await?);
        }
        if let Some(newest) = wanted.get(revision::REVISION) {
            self.set_revision(newest.clone());
        }
        if !self.has_told_progress() {
            let message = format!("Found new replica set \"{}\"", name(&self.sets[index]));
            self.tell_progress(ctx, "True", "FoundNewReplicaSet", message);
        }
        Ok(())
    }

    fn is_ours(&self, set: Option<&ReplicaSet>) -> bool {
        let uid = self.given.metadata.uid.as_deref().unwrap_or_default();
        set.is_some_and(|set| owner::is_controlled_by(&set.metadata, uid) && self.is_new(set))
    }

    /// Creates the new ReplicaSet unless it exists. `live` reads a ReplicaSet past the cache.
    pub(crate) async fn ensure_new<F>(
        &mut self,
        ctx: &Ctx,
        sets: &Controlled<ReplicaSet>,
        live: impl FnOnce(&str) -> F + Send,
    ) -> Result<()>
    where
        F: Future<Output = Result<Option<ReplicaSet>>> + Send,
    {
        if self.new.is_some() {
            return Ok(());
        }
        let newest = revision::next(&self.old());
        let set = self.make_new(newest)?;
        let set_name = name(&set).to_owned();
        match sets.create(ctx, set).await {
            Ok(created) => {
                let size = replicas(&created);
                if size > 0 {
                    scaled(ctx, &set_name, 0, size);
                }
                self.new = Some(self.sets.len());
                self.sets.push(Arc::new(created));
                self.set_revision(newest.to_string());
                let message = format!("Created new replica set \"{set_name}\"");
                self.tell_progress(ctx, "True", "NewReplicaSetCreated", message);
                Ok(())
            }
            Err(error) if error.is_already_exists() => {
                // If it is the very one we want, only our cache is behind: try again. Otherwise it
                // is another's, or another template of the same hash; counted, so that the next
                // hash differs.
                if !self.is_ours(live(&set_name).await?.as_ref()) {
                    let status = self.deployment.status.get_or_insert_default();
                    status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
                }
                Err(error)
            }
            Err(error) if cause::namespace_is_terminating(&error) => Err(error),
            Err(error) => {
                let message = format!("Failed to create new replica set \"{set_name}\": {error}");
                ctx.event(Event::warning("ReplicaSetCreateError", message.clone()));
                self.tell_progress(ctx, "False", "ReplicaSetCreateError", message);
                Err(error)
            }
        }
    }

    /// The ReplicaSet of the template of now, with as many pods as there is room for.
    fn make_new(&self, newest: i64) -> Result<ReplicaSet> {
        let limits = self.limits();
        let spec = self.given.spec.clone().unwrap_or_default();
        let collisions = self
            .given
            .status
            .as_ref()
            .and_then(|status| status.collision_count);
        let hash = template::hash(&spec.template, collisions).map_err(Error::other)?;
        let hashed = |labels: Option<BTreeMap<String, String>>| {
            let mut labels = labels.unwrap_or_default();
            labels.insert(HASH_LABEL.to_owned(), hash.clone());
            Some(labels)
        };
        let mut template = spec.template;
        let template_meta = template.metadata.get_or_insert_default();
        template_meta.labels = hashed(template_meta.labels.take());
        let labels = template_meta.labels.clone();
        let mut selector = spec.selector;
        selector.match_labels = hashed(selector.match_labels.take());

        let mut annotations = revision::annotations(self.given, &BTreeMap::new(), newest);
        for (key, value) in revision::size_annotations(limits) {
            annotations.insert(key.to_owned(), value);
        }
        let total: i32 = self.sets.iter().map(|set| replicas(set)).sum();
        let size = if is_recreate(self.given) {
            limits.desired
        } else {
            rolling::new_replicas(limits, 0, total)
        };
        Ok(ReplicaSet {
            metadata: ObjectMeta {
                name: Some(format!(
                    "{}-{hash}",
                    self.given.metadata.name.as_deref().unwrap_or_default()
                )),
                namespace: self.given.metadata.namespace.clone(),
                labels,
                annotations: Some(annotations),
                ..ObjectMeta::default()
            },
            spec: Some(ReplicaSetSpec {
                replicas: Some(size),
                min_ready_seconds: spec.min_ready_seconds,
                selector,
                template: Some(template),
            }),
            status: None,
        })
    }

    /// Takes the next step of a rolling update; true if there was one to take.
    pub(crate) async fn roll(&mut self, ctx: &Ctx, sets: &Controlled<ReplicaSet>) -> Result<bool> {
        let Some(new) = self.new_set() else {
            return Ok(false);
        };
        let old: Vec<Size> = self.old().into_iter().map(size).collect();
        let steps = rolling::step(self.limits(), &size(new), &old);
        self.resize_all(ctx, sets, &steps).await
    }

    /// Takes all pods from the old ReplicaSets; true if there were any to take.
    pub(crate) async fn stop_old(
        &mut self,
        ctx: &Ctx,
        sets: &Controlled<ReplicaSet>,
    ) -> Result<bool> {
        let steps: Vec<Resize> = self
            .old()
            .into_iter()
            .filter(|set| replicas(set) > 0)
            .map(|set| Resize {
                name: name(set).to_owned(),
                to: 0,
            })
            .collect();
        self.resize_all(ctx, sets, &steps).await
    }

    /// Gives the new ReplicaSet all wanted pods.
    pub(crate) async fn grow_new(
        &mut self,
        ctx: &Ctx,
        sets: &Controlled<ReplicaSet>,
    ) -> Result<()> {
        if let Some(index) = self.new {
            self.resize(ctx, sets, index, self.limits().desired).await?;
        }
        Ok(())
    }

    /// Shares a change of the wanted number of pods out over the ReplicaSets.
    pub(crate) async fn scale(&mut self, ctx: &Ctx, sets: &Controlled<ReplicaSet>) -> Result<()> {
        let limits = self.limits();
        let active: Vec<usize> = self.active().map(|(index, _)| index).collect();
        let only = match active[..] {
            [] => Some(self.new.or(self.sets.len().checked_sub(1))),
            [only] => Some(Some(only)),
            _ => None,
        };
        if let Some(only) = only {
            if let Some(index) = only {
                self.resize(ctx, sets, index, limits.desired).await?;
            }
            return Ok(());
        }
        if self.new_set().is_some_and(|new| is_saturated(new, limits)) {
            self.stop_old(ctx, sets).await?;
            return Ok(());
        }
        if is_recreate(self.given) {
            return Ok(());
        }
        let shares: Vec<Share> = active
            .iter()
            .map(|index| &self.sets[*index])
            .enumerate()
            .map(|(age_rank, set)| Share {
                name: name(set).to_owned(),
                replicas: replicas(set),
                max_replicas: revision::max_replicas(set),
                age_rank,
            })
            .collect();
        let reported = self
            .given
            .status
            .as_ref()
            .and_then(|status| status.replicas)
            .unwrap_or(0);
        let steps = proportion::scale(limits, reported, &shares);
        self.resize_all(ctx, sets, &steps).await?;
        Ok(())
    }

    /// Deletes the old ReplicaSets that nobody will go back to.
    pub(crate) async fn clean_up(&self, ctx: &Ctx, sets: &Controlled<ReplicaSet>) -> Result<()> {
        for set in history::surplus(self.given, &self.old()) {
            sets.delete(ctx, set, Delete::background()).await?;
        }
        Ok(())
    }

    async fn resize_all(
        &mut self,
        ctx: &Ctx,
        sets: &Controlled<ReplicaSet>,
        steps: &[Resize],
    ) -> Result<bool> {
        for step in steps {
            if let Some(index) = self.sets.iter().position(|set| name(set) == step.name) {
                self.resize(ctx, sets, index, step.to).await?;
            }
        }
        Ok(!steps.is_empty())
    }

    /// Asks a ReplicaSet for another number of pods, and notes for what that was.
    async fn resize(
        &mut self,
        ctx: &Ctx,
        sets: &Controlled<ReplicaSet>,
        index: usize,
        to: i32,
    ) -> Result<()> {
        let set = &self.sets[index];
        let from = replicas(set);
        let annotations = BTreeMap::from(revision::size_annotations(self.limits()));
        let patch = json!({
            "metadata": { "annotations": annotations },
            "spec": { "replicas": to },
        });
        self.sets[index] = Arc::new(sets.patch(ctx, set, patch).await?);
        if from != to {
            scaled(ctx, name(&self.sets[index]), from, to);
        }
        Ok(())
    }
}

fn scaled(ctx: &Ctx, set: &str, from: i32, to: i32) {
    let direction = if to > from { "up" } else { "down" };
    let note = format!("Scaled {direction} replica set {set} from {from} to {to}");
    ctx.event(Event::normal("ScalingReplicaSet", note));
}

fn name(set: &ReplicaSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// What orders ReplicaSets by age; those made in the same second by their revision.
fn age(set: &ReplicaSet) -> (Option<jiff::Timestamp>, i64, &str) {
    let created = set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, revision::revision(&set.metadata), name(set))
}

fn size(set: &ReplicaSet) -> Size {
    Size {
        name: name(set).to_owned(),
        replicas: replicas(set),
        available: available(set),
    }
}

fn available(set: &ReplicaSet) -> i32 {
    set.status
        .as_ref()
        .and_then(|status| status.available_replicas)
        .unwrap_or(0)
}

/// Whether the new ReplicaSet has every pod the Deployment wants, available.
fn is_saturated(new: &ReplicaSet, limits: Limits) -> bool {
    revision::desired_replicas(new) == Some(limits.desired)
        && replicas(new) == limits.desired
        && available(new) == limits.desired
}
