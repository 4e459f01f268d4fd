//! The EndpointSlice controller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::{EndpointPort, EndpointSlice};
use windlass::{
    Action, Context, Controller, Declare, Key, Reconciler, Result, Watched,
    handle::{Access, Controlled, Delete, Reads, Verb, Writes},
    watch::Predicate,
};

use super::candidate;
use super::hints;
use super::placing::{Plan, Wanted, identity, place};
use super::slice::{self, CONTROLLER, Family, MANAGED_BY, PortsKey, SERVICE};
use super::trigger::{self, Triggers};
use crate::{cause, owner, pod};

/// The controller of EndpointSlices.
pub(super) fn controller() -> Controller<Service> {
    Controller::of_existing::<Service>()
        .named("endpointslice")
        .reports_as("endpoint-slice-controller")
        .reconciler(Slices::declare)
}

struct Slices {
    pods: Reads<Pod>,
    nodes: Reads<Node>,
    owned: Controlled<EndpointSlice>,
    written: Writes<EndpointSlice>,
    /// Slices that say they are ours, whoever controls them: a Service that went may have left some.
    named: Reads<EndpointSlice>,
    triggers: Triggers,
}

impl Slices {
    fn declare(declare: &mut Declare<Service>) -> Self {
        // A pod on a node that nobody knows is no endpoint until the node appears.
        let appears = Predicate::when(|before: Option<&Node>, _| before.is_none());
        Self {
            pods: declare.reads(Pod::selected_by(candidate::selector)),
            nodes: declare.reads(Node::triggering_all().only(appears)),
            owned: declare.controls(),
            written: declare.writes(Access::to([Verb::Update])),
            named: declare.reads(EndpointSlice::triggering_none()),
            triggers: Triggers::default(),
        }
    }

    async fn sync(&self, service: &Service, ctx: &Context<Service>) -> Result<Action> {
        let Some(selector) = candidate::selector(service) else {
            return Ok(Action::done());
        };
        let pods = self.pods.list(ctx, selector).await?;
        let ours = BTreeMap::from([
            (SERVICE.to_owned(), ctx.key().name().to_owned()),
            (MANAGED_BY.to_owned(), CONTROLLER.to_owned()),
        ]);
        let mut existing = self.named.list(ctx, ours).await?;
        existing.retain(|slice| slice.metadata.deletion_timestamp.is_none());
        let nodes = self.nodes_of(&pods, ctx).await?;
        let trigger = self.triggers.since_last(ctx.key(), service, &pods);
        let near = hints::asked(service);
        for family in slice::families(service) {
            let of_family: Vec<_> = existing
                .extract_if(.., |slice| slice.address_type == family.name())
                .map(Arc::unwrap_or_clone)
                .collect();
            let mut plan = planned(service, &pods, &nodes, of_family, family);
            for slice in plan.create.iter_mut().chain(&mut plan.update) {
                hints::give(slice, near);
            }
            let changed = plan.keep.extract_if(.., |slice| hints::give(slice, near));
            plan.update.extend(changed);
            for slice in plan.create.iter_mut().chain(&mut plan.update) {
                trigger::annotate(&mut slice.metadata, trigger);
            }
            self.carry_out(plan, service, ctx).await?;
        }
        // Addresses of a family that the Service does not have (any more).
        for slice in &existing {
            self.owned.delete(ctx, slice, Delete::background()).await?;
        }
        Ok(Action::done())
    }

    /// The nodes that the pods are on.
    async fn nodes_of(
        &self,
        pods: &[Arc<Pod>],
        ctx: &Context<Service>,
    ) -> Result<BTreeMap<String, Arc<Node>>> {
        let names: BTreeSet<&str> = pods.iter().filter_map(|pod| pod::node_name(pod)).collect();
        let mut nodes = BTreeMap::new();
        for name in names {
            if let Some(node) = self.nodes.get(ctx, Key::cluster(name)).await? {
                nodes.insert(name.to_owned(), node);
            }
        }
        Ok(nodes)
    }

    async fn carry_out(&self, plan: Plan, service: &Service, ctx: &Context<Service>) -> Result<()> {
        // The garbage collector removes the slices of a Service that is going; new ones would
        // come too late for it.
        let going = service.metadata.deletion_timestamp.is_some();
        for slice in plan.create.into_iter().filter(|_| !going) {
            cause::unless_pointless(self.owned.create(ctx, slice).await)?;
        }
        for slice in &plan.update {
            self.written.update(ctx, slice).await?;
        }
        for slice in &plan.delete {
            self.owned.delete(ctx, slice, Delete::background()).await?;
        }
        Ok(())
    }
}

/// What is to be done to the slices of one family.
fn planned(
    service: &Service,
    pods: &[Arc<Pod>],
    nodes: &BTreeMap<String, Arc<Node>>,
    existing: Vec<EndpointSlice>,
    family: Family,
) -> Plan {
    let uid = service.metadata.uid.as_deref().unwrap_or_default();
    let is_owned = |slice: &EndpointSlice| owner::is_controlled_by(&slice.metadata, uid);
    let labels = slice::labels(service);
    let mut plan = Plan::default();
    let mut groups: BTreeMap<PortsKey, (Vec<EndpointPort>, Wanted)> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| candidate::belongs(pod, true)) {
        let ports = slice::ports(service, pod);
        let (_, wanted) = groups
            .entry(slice::ports_key(&ports))
            .or_insert_with(|| (ports, Wanted::new()));
        let node = pod::node_name(pod).and_then(|name| nodes.get(name).map(Arc::as_ref));
        if node.is_none() && !candidate::publishes_unready(service) {
            continue;
        }
        if let Some(endpoint) = slice::endpoint(pod, node, service, family) {
            wanted.insert(identity(&endpoint), endpoint);
        }
    }
    let mut by_ports: BTreeMap<PortsKey, Vec<EndpointSlice>> = BTreeMap::new();
    for slice in existing {
        if is_owned(&slice) {
            let key = slice::ports_key(slice.ports.as_deref().unwrap_or_default());
            by_ports.entry(key).or_default().push(slice);
        } else {
            plan.delete.push(slice);
        }
    }
    for (key, (ports, wanted)) in groups {
        let existing = by_ports.remove(&key).unwrap_or_default();
        place(&mut plan, existing, wanted, &labels, || {
            slice::empty(service, family, ports.clone())
        });
    }
    plan.delete.extend(by_ports.into_values().flatten());
    // Readers can tell a Service without endpoints from one that nobody has looked at yet.
    if plan.leaves_nothing() {
        let placeholder = slice::empty(service, family, Vec::new());
        let is_placeholder = |slice: &EndpointSlice| {
            slice.ports.as_ref().is_none_or(Vec::is_empty)
                && slice.endpoints.as_ref().is_none_or(Vec::is_empty)
                && slice.metadata.labels == placeholder.metadata.labels
                && is_owned(slice)
        };
        match &plan.delete[..] {
            [only] if is_placeholder(only) => plan.keep.append(&mut plan.delete),
            _ => plan.create.push(placeholder),
        }
    }
    plan.reuse(is_owned);
    plan
}

impl Reconciler for Slices {
    type Object = Service;

    async fn reconcile(&self, service: &Service, ctx: &Context<Service>) -> Result<Action> {
        self.sync(service, ctx).await
    }

    async fn terminating(&self, service: &Service, ctx: &Context<Service>) -> Result<Action> {
        self.sync(service, ctx).await
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        self.triggers.forget(key);
        Ok(())
    }
}
