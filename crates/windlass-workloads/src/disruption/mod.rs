//! The disruption controllers: say how many pods of a PodDisruptionBudget may go ([`budget`]), and
//! take back announcements of disruptions that did not come ([`stale`]).

mod budget;
mod stale;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use windlass::{
    Action, Context, Controller, Declare, Event, Operator, Reconciler, Result, Watched,
    handle::{Access, Reads, Verb, Writes},
    watch::Select,
};

use crate::owner;

/// Adds the controllers of budgets and of announced disruptions.
pub(crate) fn add_to(operator: Operator) -> Operator {
    operator
        .controller(controller())
        .controller(stale::controller())
}

fn controller() -> Controller<PodDisruptionBudget> {
    Controller::of_existing::<PodDisruptionBudget>()
        .reports_as("controllermanager")
        .reconciler(Budgets::declare)
}

struct Budgets {
    pods: Reads<Pod>,
    sets: Reads<ReplicaSet>,
    deployments: Reads<Deployment>,
    stateful: Reads<StatefulSet>,
    replication: Reads<ReplicationController>,
    status: Writes<PodDisruptionBudget>,
}

type Ctx = Context<PodDisruptionBudget>;

impl Budgets {
    fn declare(declare: &mut Declare<PodDisruptionBudget>) -> Self {
        Self {
            pods: declare.reads(Pod::selected_by(|budget: &PodDisruptionBudget| {
                budget.spec.as_ref().and_then(|spec| spec.selector.clone())
            })),
            // What is wanted changes with pods, and those wake us.
            sets: declare.reads(ReplicaSet::triggering_none()),
            deployments: declare.reads(Deployment::triggering_none()),
            stateful: declare.reads(StatefulSet::triggering_none()),
            replication: declare.reads(ReplicationController::triggering_none()),
            status: declare.writes(Access::none().on("status", [Verb::Patch])),
        }
    }

    /// How many pods the controllers of these pods want, all together, and the pods without one.
    async fn scale(
        &self,
        ctx: &Ctx,
        pods: &[Arc<Pod>],
    ) -> Result<Result<(i32, Vec<String>), String>> {
        let mut scales: BTreeMap<String, i32> = BTreeMap::new();
        let mut unmanaged = Vec::new();
        for pod in pods {
            let name = pod.metadata.name.clone().unwrap_or_default();
            let Some(controller) = owner::controller_of(&pod.metadata) else {
                unmanaged.push(name);
                continue;
            };
            let found = self
                .scale_of(ctx, &controller.kind, &controller.name, &controller.uid)
                .await?;
            match found {
                Some((uid, scale)) => scales.insert(uid, scale),
                None => return Ok(Err(format!("found no controllers for pod {name:?}"))),
            };
        }
        Ok(Ok((scales.values().sum(), unmanaged)))
    }

    /// The controller that decides how many there are, and how many it wants.
    async fn scale_of(
        &self,
        ctx: &Ctx,
        kind: &str,
        name: &str,
        uid: &str,
    ) -> Result<Option<(String, i32)>> {
        let same = |has: Option<&String>| has.is_some_and(|has| has == uid);
        let wanted = match kind {
            "ReplicaSet" => {
                let set = self.sets.get(ctx, name).await?;
                let Some(set) = set.filter(|set| same(set.metadata.uid.as_ref())) else {
                    return Ok(None);
                };
                if let Some(owner) = owner::controller_of(&set.metadata)
                    && owner.kind == "Deployment"
                {
                    let found = self.deployments.get(ctx, owner.name.as_str()).await?;
                    let found = found.filter(|one| one.metadata.uid.as_ref() == Some(&owner.uid));
                    return Ok(found.map(|deployment| {
                        let spec = deployment.spec.as_ref();
                        let wanted = spec.and_then(|spec| spec.replicas);
                        (owner.uid.clone(), wanted.unwrap_or(1))
                    }));
                }
                set.spec.as_ref().and_then(|spec| spec.replicas)
            }
            "StatefulSet" => {
                let set = self.stateful.get(ctx, name).await?;
                match set.filter(|set| same(set.metadata.uid.as_ref())) {
                    Some(set) => set.spec.as_ref().and_then(|spec| spec.replicas),
                    None => return Ok(None),
                }
            }
            "ReplicationController" => {
                let set = self.replication.get(ctx, name).await?;
                match set.filter(|set| same(set.metadata.uid.as_ref())) {
                    Some(set) => set.spec.as_ref().and_then(|spec| spec.replicas),
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some((uid.to_owned(), wanted.unwrap_or(1))))
    }
}

impl Reconciler for Budgets {
    type Object = PodDisruptionBudget;

    async fn reconcile(&self, budget: &PodDisruptionBudget, ctx: &Ctx) -> Result<Action> {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
        let pods = self.pods.list(ctx, Select::labels(selector)).await?;
        if pods.is_empty() {
            ctx.event(Event::normal("NoPods", "No matching pods found"));
        }
        let now = ctx.clock().now();
        let mut scale = 0;
        if budget::needs_scale(budget) {
            match self.scale(ctx, &pods).await? {
                Ok((wanted, unmanaged)) => {
                    scale = wanted;
                    if !unmanaged.is_empty() {
                        ctx.event(Event::warning("UnmanagedPods", unmanaged_note(budget)));
                    }
                }
                Err(why) => {
                    let note = format!("Failed to calculate the number of expected pods: {why}");
                    ctx.event(Event::warning("CalculateExpectedPodCountFailed", note));
                    let status = budget::failed(budget, &why, now);
                    self.status.status(ctx, budget, status).await?;
                    return Ok(Action::done());
                }
            }
        }
        let status = budget::status(budget, &pods, scale, now);
        self.status.status(ctx, budget, status).await?;
        let (_, recheck) = budget::disrupted(budget, &pods, now);
        Ok(recheck.map_or(Action::done(), |at| Action::done().requeue_at(at)))
    }
}

fn unmanaged_note(budget: &PodDisruptionBudget) -> String {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
    let labels = selector
        .unwrap_or_default()
        .match_labels
        .unwrap_or_default();
    // Go's print-out of a selector.
    let labels: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}: {value},"))
        .collect();
    format!(
        "Pods selected by this PodDisruptionBudget (selector: &LabelSelector{{MatchLabels:map[string]string{{{}}},\
         MatchExpressions:[]LabelSelectorRequirement{{}},}}) were found to be unmanaged. As a result, the status of \
         the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods \
         please set \".spec.minAvailable\" field of the PDB to an integer value.",
        labels.join("")
    )
}
