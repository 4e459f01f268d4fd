//! The controller: counts the pods of a set, and gives them new images as its strategy allows.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass::handle::{Access, Reads, Verb, Writes};
use windlass::{Event, Key, prelude::*, watch::Select};

use crate::injection::selects;
use crate::kind::SidecarSet;
use crate::readiness::formers_of;
use crate::record::{ANNOTATION, Record, SENT, records_of};
use crate::rollout::{is_active, plan};

pub(crate) struct Rollout {
    pods: Reads<Pod>,
    namespaces: Reads<Namespace>,
    written: Writes<Pod>,
}

impl Rollout {
    pub(crate) fn declare(declare: &mut Declare<SidecarSet>) -> Self {
        let selector = |set: &SidecarSet| set.spec.selector.clone();
        Self {
            pods: declare.reads(Pod::selected_by(selector)),
            namespaces: declare.reads(Namespace::triggering_all()),
            written: declare.writes(Access::to([Verb::Patch])),
        }
    }

    /// The pods of a set that have not ended.
    async fn selected(&self, set: &SidecarSet, ctx: &Context<SidecarSet>) -> Result<Vec<Arc<Pod>>> {
        let namespaces = self.namespaces.list(ctx, Select::all_namespaces()).await?;
        let labels = namespaces.iter().map(|one| (one.name_any(), one.labels()));
        let (labels, none): (BTreeMap<_, _>, _) = (labels.collect(), BTreeMap::new());
        let mut pods = self.pods.list(ctx, set.spec.selector.clone()).await?;
        pods.retain(|pod| {
            let namespace = pod.namespace().unwrap_or_default();
            let of_namespace = labels.get(&namespace).copied().unwrap_or(&none);
            is_active(pod) && selects(set, pod.labels(), &namespace, of_namespace)
        });
        Ok(pods)
    }

    /// Gives a pod the images that the set says, and records it on the pod in the same write.
    async fn upgrade(&self, set: &SidecarSet, pod: &Pod, ctx: &Context<SidecarSet>) -> Result<()> {
        let patch = upgrade_of(set, pod, &ctx.clock().time())?;
        self.written.patch_entries(ctx, pod, patch).await?;
        let (pod, generation) = (Key::of(pod), set.metadata.generation.unwrap_or_default());
        let note = format!("pod {pod} gets the images of generation {generation}");
        ctx.event(Event::normal("SidecarUpgraded", note).action("Upgrade"));
        Ok(())
    }
}

impl Reconciler for Rollout {
    type Object = SidecarSet;

    async fn reconcile(&self, set: &SidecarSet, ctx: &Context<SidecarSet>) -> Result<Action> {
        let pods = self.selected(set, ctx).await?;
        let mut plan = plan(set, &pods);
        let upgradable = upgradable(set, plan.stuck.len(), ctx);
        let is_same = |one: &Condition| {
            one.reason == upgradable.reason && one.observed_generation == set.metadata.generation
        };
        let mut known = set.status.iter().flat_map(|status| &status.conditions);
        if !plan.stuck.is_empty() && !known.any(is_same) {
            ctx.event(Event::warning("NotUpgradable", &upgradable.message));
        }
        plan.status.conditions.push(upgradable);
        ctx.set_status(plan.status)?;
        for pod in plan.upgrade {
            match self.upgrade(set, pod, ctx).await {
                Err(error) if error.is_not_found() => {}
                // One that has changed since it was read is looked at again.
                done => done?,
            }
        }
        Ok(Action::done())
    }
}

/// What is changed in a pod that gets new images.
fn upgrade_of(set: &SidecarSet, pod: &Pod, now: &Time) -> Result<Value> {
    let mut record = Record::of(set);
    let running = pod.spec.iter().flat_map(|spec| &spec.containers);
    let running: BTreeMap<_, _> = running.map(|one| (&one.name, &one.image)).collect();
    let mut records = records_of(pod);
    record.former = records.remove(&set.name_any()).unwrap_or_default().former;
    let mut changed = Vec::new();
    for Container { name, image, .. } in set.spec.containers.iter().map(|one| &one.container) {
        if running.get(name).is_some_and(|running| *running != image) {
            changed.push(json!({ "name": name, "image": image }));
            let formers = record.former.entry(name.clone()).or_default();
            let image = image.as_deref().unwrap_or_default();
            *formers = formers_of(pod, name, formers, image);
        }
    }
    records.insert(set.name_any(), record);
    Ok(json!({
        "metadata": { "annotations": { ANNOTATION: serde_json::to_string(&records)?, SENT: now } },
        "spec": { "containers": changed },
    }))
}

/// The condition that says whether every pod can get what the set says.
fn upgradable(set: &SidecarSet, stuck: usize, ctx: &Context<SidecarSet>) -> Condition {
    let why = "differ in more than images: they get the sidecars when they are recreated";
    let (status, reason, message) = match stuck {
        0 => ("True", "ImagesOnly", String::new()),
        _ => (
            "False",
            "MoreThanImages",
            format!("{stuck} of the pods {why}"),
        ),
    };
    Condition {
        type_: "Upgradable".to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: set.metadata.generation,
        last_transition_time: Time(ctx.clock().now()),
    }
}
