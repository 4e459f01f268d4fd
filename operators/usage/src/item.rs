//! What is counted: a pod from when it was scheduled until it ends, a claim from when it was created
//! until it is gone; each with what it requests.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use serde::{Deserialize, Serialize};
use windlass_apimachinery::Quantity;

use crate::kind::{GroupBy, ReportSpec};

/// What something requests: thousandths of a CPU, bytes of memory, bytes of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Amount {
    pub(crate) cpu: u64,
    pub(crate) memory: u64,
    pub(crate) volume: u64,
}

impl Amount {
    fn plus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            memory: self.memory + other.memory,
            volume: self.volume + other.volume,
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.max(other.cpu),
            memory: self.memory.max(other.memory),
            volume: self.volume.max(other.volume),
        }
    }
}

/// Something that is counted. Times are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) uid: String,
    /// Namespace and name of a pod: what its use is found by.
    pub(crate) pod: Option<(String, String)>,
    pub(crate) row: String,
    pub(crate) amount: Amount,
    pub(crate) from: i64,
    pub(crate) until: Option<i64>,
}

/// Whether something of these labels in this namespace is counted.
fn is_counted(spec: &ReportSpec, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
    let namespaces = &spec.namespaces;
    let selector = spec.selector.clone().map(Selector::try_from);
    (namespaces.is_empty() || namespaces.iter().any(|one| one == namespace))
        && selector.is_none_or(|selector| selector.is_ok_and(|one| one.matches(labels)))
}

/// A pod, if it has been scheduled and is to be counted.
pub(crate) fn of_pod(spec: &ReportSpec, pod: &Pod) -> Option<Item> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    if !is_counted(spec, &namespace, pod.labels()) {
        return None;
    }
    let status = pod.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let scheduled = conditions.find(|one| one.type_ == "PodScheduled" && one.status == "True")?;
    let since = scheduled.last_transition_time.as_ref().map(|time| time.0);
    let created = pod.creation_timestamp().map(|time| time.0);
    let row = match spec.group_by {
        GroupBy::Namespace => namespace.clone(),
        GroupBy::Pod => format!("{namespace}/{name}"),
        GroupBy::Owner => format!("{namespace}/{}", owner(pod)),
        GroupBy::Label => label(spec, pod.labels()),
    };
    Some(Item {
        uid: pod.uid()?,
        row,
        amount: request(pod),
        from: since.or(created)?.as_millisecond(),
        until: end(pod),
        pod: Some((namespace, name)),
    })
}

/// A claim, if it is bound and to be counted.
pub(crate) fn of_claim(spec: &ReportSpec, claim: &PersistentVolumeClaim) -> Option<Item> {
    let (namespace, name) = (claim.namespace().unwrap_or_default(), claim.name_any());
    if !is_counted(spec, &namespace, claim.labels()) {
        return None;
    }
    let status = claim.status.as_ref()?;
    if status.phase.as_deref() != Some("Bound") {
        return None;
    }
    let row = match spec.group_by {
        GroupBy::Namespace => namespace,
        GroupBy::Pod | GroupBy::Owner => format!("{namespace}/PersistentVolumeClaim/{name}"),
        GroupBy::Label => label(spec, claim.labels()),
    };
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.clone();
    let size = status.capacity.clone().or(requests).unwrap_or_default();
    let volume = size.get("storage").map_or(0, whole);
    Some(Item {
        uid: claim.uid()?,
        pod: None,
        row,
        amount: Amount {
            volume,
            ..Amount::default()
        },
        from: claim.creation_timestamp()?.0.as_millisecond(),
        until: None,
    })
}

fn label(spec: &ReportSpec, labels: &BTreeMap<String, String>) -> String {
    let value = spec.label.as_ref().and_then(|label| labels.get(label));
    value.cloned().unwrap_or_default()
}

/// What controls a pod; the Deployment, where it is a `ReplicaSet` of one.
fn owner(pod: &Pod) -> String {
    let mut owners = pod.owner_references().iter();
    let Some(owner) = owners.find(|owner| owner.controller == Some(true)) else {
        return format!("Pod/{}", pod.name_any());
    };
    let hash = pod.labels().get("pod-template-hash");
    let deployment = hash.and_then(|hash| owner.name.strip_suffix(hash)?.strip_suffix('-'));
    match (owner.kind.as_str(), deployment) {
        ("ReplicaSet", Some(name)) => format!("Deployment/{name}"),
        (kind, _) => format!("{kind}/{}", owner.name),
    }
}

/// When the last container of a pod that is over ended.
fn end(pod: &Pod) -> Option<i64> {
    let status = pod.status.as_ref()?;
    if !matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return None;
    }
    let containers = status.container_statuses.iter().flatten();
    let ended = containers.filter_map(|container| {
        let terminated = container.state.as_ref()?.terminated.as_ref()?;
        Some(terminated.finished_at.as_ref()?.0)
    });
    ended.max().map(Timestamp::as_millisecond)
}

/// What a pod requests, as the scheduler counts it: its containers and sidecars together, or the
/// largest of what runs before them, and its overhead.
fn request(pod: &Pod) -> Amount {
    let Some(spec) = &pod.spec else {
        return Amount::default();
    };
    let containers = spec.containers.iter().map(of_container);
    let mut together = containers.fold(Amount::default(), Amount::plus);
    let (mut sidecars, mut largest) = (Amount::default(), Amount::default());
    for container in spec.init_containers.iter().flatten() {
        let amount = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars = sidecars.plus(amount);
            largest = largest.max(sidecars);
        } else {
            largest = largest.max(sidecars.plus(amount));
        }
    }
    together = together.plus(sidecars).max(largest);
    together.plus(amount(spec.overhead.as_ref()))
}

fn of_container(container: &Container) -> Amount {
    let resources = container.resources.as_ref();
    amount(resources.and_then(|resources| resources.requests.as_ref()))
}

fn amount(of: Option<&BTreeMap<String, Text>>) -> Amount {
    let get = |name: &str| of.and_then(|of| of.get(name));
    Amount {
        cpu: get("cpu").map_or(0, milli),
        memory: get("memory").map_or(0, whole),
        volume: 0,
    }
}

/// A quantity in thousandths, rounded up.
pub(crate) fn milli(text: &Text) -> u64 {
    let quantity = Quantity::parse(&text.0).unwrap_or_default();
    u64::try_from(quantity.milli()).unwrap_or_default()
}

/// A quantity as a whole number, rounded up.
pub(crate) fn whole(text: &Text) -> u64 {
    let quantity = Quantity::parse(&text.0).unwrap_or_default();
    u64::try_from(quantity.rounded_to_whole().units()).unwrap_or_default()
}
