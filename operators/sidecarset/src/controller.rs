//! The controller: counts the pods of a set, and gives them new images as its strategy allows.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass::{
    Action, Context, Declare, Error, Event, Reconciler, Result, Watched,
    handle::{Access, Reads, Verb, Writes},
    watch::Select,
};

use crate::injection::selects;
use crate::kind::{SidecarSet, SidecarSetStatus};
use crate::record::{ANNOTATION, Record, records_of, text_of};
use crate::rollout::{Plan, id_of, is_active, plan};

/// The condition that says whether every pod can get what the set says.
const UPGRADABLE: &str = "Upgradable";

pub(crate) struct Rollout {
    pods: Reads<Pod>,
    namespaces: Reads<Namespace>,
    written: Writes<Pod>,
}

impl Rollout {
    pub(crate) fn declare(declare: &mut Declare<SidecarSet>) -> Self {
        Self {
            pods: declare.reads(Pod::selected_by(|set: &SidecarSet| {
                set.spec.selector.clone()
            })),
            namespaces: declare.reads(Namespace::triggering_all()),
            written: declare.writes(Access::to([Verb::Patch])),
        }
    }

    /// The pods of a set that have not ended.
    async fn matched(&self, set: &SidecarSet, ctx: &Context<SidecarSet>) -> Result<Vec<Arc<Pod>>> {
        let labels: BTreeMap<String, BTreeMap<String, String>> = self
            .namespaces
            .list(ctx, Select::own_namespace())
            .await?
            .into_iter()
            .map(|namespace| (namespace.name_any(), namespace.labels().clone()))
            .collect();
        let selected = Select::labels(set.spec.selector.clone()).in_all_namespaces();
        let mut pods = self.pods.list(ctx, selected).await?;
        pods.retain(|pod| {
            let namespace = pod.namespace().unwrap_or_default();
            let of_namespace = labels.get(&namespace).cloned().unwrap_or_default();
            is_active(pod) && selects(set, pod.labels(), &namespace, &of_namespace)
        });
        Ok(pods)
    }

    /// Gives a pod the images that the set says, and records it on the pod in the same write.
    async fn upgrade(&self, set: &SidecarSet, pod: &Pod, ctx: &Context<SidecarSet>) -> Result<()> {
        let patch = upgrade_of(set, pod)?;
        self.written.patch_entries(ctx, pod, patch).await?;
        let note = format!(
            "pod {}/{} gets the images of generation {}",
            pod.namespace().unwrap_or_default(),
            pod.name_any(),
            set.metadata.generation.unwrap_or_default()
        );
        ctx.event(Event::normal("SidecarUpgraded", note).action("Upgrade"));
        Ok(())
    }
}

impl Reconciler for Rollout {
    type Object = SidecarSet;

    async fn reconcile(&self, set: &SidecarSet, ctx: &Context<SidecarSet>) -> Result<Action> {
        let pods = self.matched(set, ctx).await?;
        let plan = plan(set, &pods);
        let mut status =
            serde_json::to_value(SidecarSetStatus::from(plan.counts)).map_err(Error::other)?;
        status["conditions"] = json!([upgradable(set, &plan)]);
        if !plan.stuck.is_empty() && !was_told(set) {
            ctx.event(Event::warning("NotUpgradable", why_stuck(&plan)));
        }
        ctx.set_status(status)?;
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
fn upgrade_of(set: &SidecarSet, pod: &Pod) -> Result<Value> {
    let mut record = Record::of(set);
    let running = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut changed = Vec::new();
    for container in running {
        let mut sidecars = set.spec.containers.iter();
        let sidecar = sidecars.find(|sidecar| sidecar.container.name == container.name);
        let image = sidecar.and_then(|sidecar| sidecar.container.image.as_ref());
        if let Some(image) = image.filter(|image| container.image.as_ref() != Some(*image)) {
            changed.push(json!({ "name": container.name, "image": image }));
            let id = id_of(pod, &container.name).unwrap_or_default();
            record.replaced.insert(container.name.clone(), id);
        }
    }
    let mut records = records_of(pod);
    records.insert(set.name_any(), record);
    let mut patch = json!({ "metadata": { "annotations": { ANNOTATION: text_of(&records)? } } });
    if !changed.is_empty() {
        patch["spec"]["containers"] = changed.into();
    }
    Ok(patch)
}

fn upgradable(set: &SidecarSet, plan: &Plan<'_>) -> Value {
    let (status, reason, message) = if plan.stuck.is_empty() {
        ("True", "ImagesOnly", String::new())
    } else {
        ("False", "MoreThanImages", why_stuck(plan))
    };
    json!({
        "type": UPGRADABLE,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": set.metadata.generation,
    })
}

fn why_stuck(plan: &Plan<'_>) -> String {
    let count = plan.stuck.len();
    format!(
        "{count} of the pods differ in more than images: they get the sidecars when they are made anew"
    )
}

/// Whether the condition has said so of this generation already.
fn was_told(set: &SidecarSet) -> bool {
    let conditions = set.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|condition| {
        condition.type_ == UPGRADABLE
            && condition.status == "False"
            && condition.observed_generation == set.metadata.generation
    })
}
