//! The Endpoints controller: one object of the Service's name with all its endpoints.

use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service, ServicePort,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass::{
    Action, Context, Controller, Declare, Key, Reconciler, Result, Watched,
    handle::{Access, Reads, Verb, Writes},
    watch::Changed,
};

use super::candidate;
use super::slice::{Family, HEADLESS, families};
use super::subsets::{self, Entry};
use super::trigger::{self, Triggers};
use crate::{cause, pod};

/// Who keeps an Endpoints object.
pub(super) const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
/// The controller's name, there and in events.
pub(super) const CONTROLLER: &str = "endpoint-controller";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// The controller of Endpoints.
pub(super) fn controller() -> Controller<Service> {
    Controller::of_existing::<Service>()
        .named("endpoint")
        .reports_as(CONTROLLER)
        .reconciler(Legacy::declare)
}

struct Legacy {
    pods: Reads<Pod>,
    endpoints: Reads<Endpoints>,
    written: Writes<Endpoints>,
    triggers: Triggers,
}

impl Legacy {
    fn declare(declare: &mut Declare<Service>) -> Self {
        Self {
            pods: declare.reads(Pod::selected_by(candidate::selector)),
            // What somebody deletes comes back; what somebody changes stays until a pod changes.
            endpoints: declare.reads(Endpoints::handled_by(|change| match change {
                Changed::Deleted(endpoints) => vec![Key::of(endpoints)],
                _ => Vec::new(),
            })),
            written: declare.writes(Access::to([Verb::Create, Verb::Update])),
            triggers: Triggers::default(),
        }
    }

    async fn sync(&self, service: &Service, ctx: &Context<Service>) -> Result<Action> {
        let Some(selector) = candidate::selector(service) else {
            return Ok(Action::done());
        };
        let pods = self.pods.list(ctx, selector).await?;
        let trigger = self.triggers.since_last(ctx.key(), service, &pods);
        let mut wanted = subsets::pack(&entries(service, &pods));
        let current = self.endpoints.get(ctx, ctx.key().name()).await?;
        let labels = labels(service);
        if let Some(current) = &current
            && is_current(current, &wanted, &labels)
        {
            return Ok(Action::done());
        }
        let over = subsets::truncate(&mut wanted);
        let exists = current.is_some();
        let mut endpoints = current.map(Arc::unwrap_or_clone).unwrap_or_default();
        endpoints.metadata.name = Some(ctx.key().name().to_owned());
        endpoints.subsets = Some(wanted);
        endpoints.metadata.labels = Some(labels);
        trigger::annotate(&mut endpoints.metadata, trigger);
        let annotations = endpoints.metadata.annotations.get_or_insert_default();
        if over {
            annotations.insert(OVER_CAPACITY.to_owned(), "truncated".to_owned());
        } else {
            annotations.remove(OVER_CAPACITY);
        }
        if exists {
            self.written.update(ctx, &endpoints).await?;
        } else {
            cause::unless_pointless(self.written.create(ctx, &endpoints).await)?;
        }
        Ok(Action::done())
    }
}

/// Each address of the Service with each of its ports.
fn entries(service: &Service, pods: &[Arc<Pod>]) -> Vec<Entry> {
    let tolerant = candidate::publishes_unready(service);
    let ports = candidate::service_ports(service);
    let mut entries = Vec::new();
    for pod in pods.iter().filter(|pod| candidate::belongs(pod, tolerant)) {
        let Some(address) = address(service, pod) else {
            continue;
        };
        let ready = tolerant || pod::is_ready(pod);
        let mut add = |port: Option<EndpointPort>| {
            entries.push(Entry {
                address: address.clone(),
                port,
                ready,
            });
        };
        if ports.is_empty() && candidate::is_headless(service) {
            add(None);
        }
        for port in ports {
            if let Some(number) = candidate::target_port(pod, port) {
                add(Some(endpoint_port(port, number)));
            }
        }
    }
    entries
}

fn endpoint_port(port: &ServicePort, number: i32) -> EndpointPort {
    EndpointPort {
        name: port.name.clone().filter(|name| !name.is_empty()),
        port: number,
        protocol: port.protocol.clone(),
        app_protocol: port.app_protocol.clone(),
    }
}

/// The pod's first address of the Service's first family.
fn address(service: &Service, pod: &Pod) -> Option<EndpointAddress> {
    let said = service.spec.as_ref()?.ip_families.as_deref()?.first();
    let is_six = match said {
        Some(family) => family == Family::V6.name(),
        None => families(service) == [Family::V6],
    };
    let address = candidate::addresses(pod).find(|address| address.is_ipv6() == is_six)?;
    Some(EndpointAddress {
        ip: address.to_string(),
        hostname: candidate::hostname(pod, service),
        node_name: Some(pod::node_name(pod).unwrap_or_default().to_owned()),
        target_ref: Some(candidate::reference(pod)),
    })
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    if candidate::is_headless(service) {
        labels.insert(HEADLESS.to_owned(), String::new());
    } else {
        labels.remove(HEADLESS);
    }
    labels.insert(MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    labels
}

/// Whether the object says what it should already, in whatever order.
fn is_current(
    current: &Endpoints,
    wanted: &[EndpointSubset],
    labels: &BTreeMap<String, String>,
) -> bool {
    let subsets = current.subsets.as_deref().unwrap_or_default();
    let annotations = current.metadata.annotations.as_ref();
    let is_over = annotations.is_some_and(|all| all.contains_key(OVER_CAPACITY));
    // The headless label follows when something else changes, as in Kubernetes.
    let own = |labels: Option<&BTreeMap<String, String>>| {
        let mut own = labels.cloned().unwrap_or_default();
        own.remove(HEADLESS);
        own
    };
    subsets::pack(&subsets::unpack(subsets)) == wanted
        && own(current.metadata.labels.as_ref()) == own(Some(labels))
        && !is_over
}

impl Reconciler for Legacy {
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
