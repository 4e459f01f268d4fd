//! What objects use: one of their kind, and pods, Services and claims something more.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde_json::Value;

use super::amounts::Amounts;
use super::scope;
use crate::kinds::core::pod::resources as pods;
use crate::object::meta;
use crate::quantity::Quantity;
use crate::registry::resource::Resource;
use crate::webhook::{Attributes, Operation};

/// Kinds that are counted under a name of old, too.
const ALIASES: &[&str] = &[
    "configmaps",
    "resourcequotas",
    "replicationcontrollers",
    "secrets",
];
const OF_PODS: &[&str] = &[
    "count/pods",
    "pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
/// Of these every container must say how much it wants, where they are limited.
const MUST_BE_SAID: &[&str] = &[
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];
const OF_SERVICES: &[&str] = &[
    "count/services",
    "services",
    "services.nodeports",
    "services.loadbalancers",
];
const OF_CLAIMS: &[&str] = &["persistentvolumeclaims", "requests.storage"];
const BY_CLASS: &str = ".storageclass.storage.k8s.io/";

/// How quotas count a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    Pod,
    Service,
    Claim,
    Other,
}

/// How a kind is measured.
pub(super) struct Measure<'a> {
    kind: Measured,
    resource: &'a Resource,
    now: jiff::Timestamp,
}

impl<'a> Measure<'a> {
    /// How the object of a request is measured; `None` when the request changes no usage.
    pub(super) fn of(attributes: &Attributes<'a>, object: &Value) -> Option<Self> {
        let resource = attributes.resource.as_ref();
        let creates = attributes.operation == Operation::Create;
        let updates = attributes.operation == Operation::Update;
        let whole = attributes.subresource.is_empty();
        let kind = resource.strategy.measured()?;
        let handled = match kind {
            Measured::Pod if attributes.subresource == "resize" => updates,
            // A pod that comes to end by itself, or no longer does, moves from scope to scope.
            Measured::Pod => {
                let moved = |old: &Value| {
                    scope::is_limited_in_time(old) != scope::is_limited_in_time(object)
                };
                whole && (creates || (updates && attributes.old.is_some_and(moved)))
            }
            Measured::Service => whole && (creates || updates),
            Measured::Claim => {
                (whole && (creates || updates)) || attributes.subresource == "status"
            }
            Measured::Other => whole && creates,
        };
        handled.then(|| Self {
            kind,
            resource,
            now: attributes.server.clock().now(),
        })
    }

    fn count_name(&self) -> String {
        let plural = &self.resource.plural;
        match self.resource.group.as_str() {
            "" => format!("count/{plural}"),
            group => format!("count/{plural}.{group}"),
        }
    }

    /// What of the limits this kind has to do with, by name.
    pub(super) fn limited(&self, hard: &Amounts) -> Vec<String> {
        let is_ours = |name: &&str| match self.kind {
            Measured::Pod => {
                OF_PODS.contains(name)
                    || name.starts_with("hugepages-")
                    || name.starts_with("requests.hugepages-")
                    || name.strip_prefix("requests.").is_some_and(is_extended)
            }
            Measured::Service => OF_SERVICES.contains(name),
            Measured::Claim => {
                *name == "count/persistentvolumeclaims"
                    || OF_CLAIMS.contains(name)
                    || OF_CLAIMS.iter().any(|one| {
                        name.strip_suffix(one)
                            .is_some_and(|class| class.ends_with(BY_CLASS))
                    })
            }
            Measured::Other => {
                *name == self.count_name()
                    || (self.resource.group.is_empty()
                        && ALIASES.contains(name)
                        && *name == self.resource.plural)
            }
        };
        hard.names().filter(is_ours).map(str::to_owned).collect()
    }

    /// Whether an object is in all scopes of a quota.
    pub(super) fn in_scopes(&self, quota_spec: &Value, object: &Value) -> bool {
        scope::all_match(quota_spec, |scope, expression| match self.kind {
            Measured::Pod => scope::of_pod(object, scope, expression),
            Measured::Claim => scope::of_claim(object, scope, expression),
            Measured::Service | Measured::Other => false,
        })
    }

    /// What containers of a pod leave unsaid that is limited.
    pub(super) fn missing(&self, limited: &[String], object: &Value) -> Option<String> {
        if self.kind != Measured::Pod {
            return None;
        }
        let spec = &object["spec"];
        let given = |part: &str| {
            spec["resources"][part]
                .as_object()
                .is_some_and(|map| !map.is_empty())
        };
        if given("requests") || given("limits") {
            return None;
        }
        let required = limited
            .iter()
            .filter(|name| MUST_BE_SAID.contains(&name.as_str()));
        let missing: Vec<String> = required
            .filter_map(|name| {
                let (part, resource) = match name.split_once('.') {
                    Some((part, resource)) => (part, resource),
                    None => ("requests", name.as_str()),
                };
                let lists = ["containers", "initContainers"];
                let containers = lists.iter().filter_map(|list| spec[*list].as_array());
                let silent: BTreeSet<&str> = containers
                    .flatten()
                    .filter(|container| container["resources"][part].get(resource).is_none())
                    .filter_map(|container| container["name"].as_str())
                    .collect();
                let silent: Vec<&str> = silent.into_iter().collect();
                (!silent.is_empty()).then(|| format!("{name} for: {}", silent.join(",")))
            })
            .collect();
        (!missing.is_empty()).then(|| format!("must specify {}", missing.join("; ")))
    }

    /// What an object uses.
    pub(super) fn usage(&self, object: &Value) -> Amounts {
        let mut usage = Amounts::default();
        usage.set(self.count_name(), Quantity::ONE);
        match self.kind {
            Measured::Pod => self.add_pod(object, &mut usage),
            Measured::Service => add_service(&object["spec"], &mut usage),
            Measured::Claim => add_claim(object, &mut usage),
            Measured::Other => {
                let plural = self.resource.plural.as_str();
                if self.resource.group.is_empty() && ALIASES.contains(&plural) {
                    usage.set(plural, Quantity::ONE);
                }
            }
        }
        usage
    }

    /// A pod that is over, or should be gone by now, uses nothing but its place.
    fn add_pod(&self, pod: &Value, usage: &mut Amounts) {
        let phase = pod["status"]["phase"].as_str();
        if matches!(phase, Some("Failed" | "Succeeded")) || self.is_overdue(pod) {
            return;
        }
        usage.set("pods", Quantity::ONE);
        let spec = &pod["spec"];
        for name in resource_names(spec) {
            if let Some(request) = pods::with_overhead(spec, "requests", name) {
                if matches!(name, "cpu" | "memory" | "ephemeral-storage")
                    || name.starts_with("hugepages-")
                {
                    usage.set(name, request);
                    usage.set(format!("requests.{name}"), request);
                } else if is_extended(name) {
                    usage.set(format!("requests.{name}"), request);
                }
            }
            if matches!(name, "cpu" | "memory" | "ephemeral-storage")
                && let Some(limit) = pods::with_overhead(spec, "limits", name)
            {
                usage.set(format!("limits.{name}"), limit);
            }
        }
    }

    fn is_overdue(&self, pod: &Value) -> bool {
        let deleted = meta(pod, "deletionTimestamp").parse::<jiff::Timestamp>();
        let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64();
        match (deleted, grace) {
            (Ok(deleted), Some(grace)) => deleted
                .checked_add(SignedDuration::from_secs(grace))
                .is_ok_and(|until| self.now > until),
            _ => false,
        }
    }
}

/// Every resource that a pod speaks of.
fn resource_names(spec: &Value) -> BTreeSet<&str> {
    let lists = ["containers", "initContainers"];
    let containers = lists.iter().filter_map(|list| spec[*list].as_array());
    let resources = containers
        .flatten()
        .map(|container| &container["resources"]);
    let maps = resources
        .chain([&spec["resources"]])
        .flat_map(|resources| [&resources["requests"], &resources["limits"]]);
    let maps = maps.chain([&spec["overhead"]]).filter_map(Value::as_object);
    maps.flat_map(|map| map.keys().map(String::as_str))
        .collect()
}

/// Whether a resource is one that a node brings besides those every node has.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

fn add_service(spec: &Value, usage: &mut Amounts) {
    let ports = spec["ports"].as_array().map_or(0, Vec::len);
    let chosen = spec["ports"].as_array().into_iter().flatten();
    let chosen = chosen.filter(|port| port["nodePort"].as_u64().is_some_and(|port| port > 0));
    let (node_ports, balancers) = match spec["type"].as_str() {
        Some("NodePort") => (ports, 0),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => {
            (chosen.count(), 1)
        }
        Some("LoadBalancer") => (ports, 1),
        _ => (0, 0),
    };
    usage.set("services", Quantity::ONE);
    usage.set("services.nodeports", Quantity::whole(node_ports));
    usage.set("services.loadbalancers", Quantity::whole(balancers));
}

fn add_claim(claim: &Value, usage: &mut Amounts) {
    let class = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"]
        .as_str()
        .or(claim["spec"]["storageClassName"].as_str())
        .filter(|class| !class.is_empty());
    let mut set = |what: &str, amount: Quantity| {
        usage.set(what, amount);
        if let Some(class) = class {
            usage.set(format!("{class}{BY_CLASS}{what}"), amount);
        }
    };
    set("persistentvolumeclaims", Quantity::ONE);
    let amount = |value: &Value| Quantity::parse(value.as_str()?);
    if let Some(asked) = amount(&claim["spec"]["resources"]["requests"]["storage"]) {
        // What was given already counts while a smaller request is not yet met.
        let given = amount(&claim["status"]["allocatedResources"]["storage"]);
        let most = given.filter(|given| *given > asked).unwrap_or(asked);
        set("requests.storage", most.rounded_to_whole());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(spec: &Value) -> String {
        let mut usage = Amounts::default();
        add_service(spec, &mut usage);
        usage.to_string()
    }

    #[test]
    fn a_service_uses_the_ports_it_is_going_to_get() {
        let ports = json!([{"port": 1}, {"port": 2, "nodePort": 30000}]);
        let with = |more: &Value| {
            let mut spec = json!({"ports": ports});
            for (field, value) in more.as_object().into_iter().flatten() {
                spec[field] = value.clone();
            }
            service(&spec)
        };
        assert_eq!(
            with(&json!({"type": "ClusterIP"})),
            "services=1,services.loadbalancers=0,services.nodeports=0"
        );
        assert_eq!(
            with(&json!({"type": "NodePort"})),
            "services=1,services.loadbalancers=0,services.nodeports=2"
        );
        assert_eq!(
            with(&json!({"type": "LoadBalancer"})),
            "services=1,services.loadbalancers=1,services.nodeports=2"
        );
        assert_eq!(
            with(&json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false})),
            "services=1,services.loadbalancers=1,services.nodeports=1"
        );
    }

    #[test]
    fn a_claim_uses_storage_of_its_class() {
        let mut usage = Amounts::default();
        let claim = json!({
            "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1500m"}}},
            "status": {"allocatedResources": {"storage": "3Gi"}},
        });
        add_claim(&claim, &mut usage);
        assert_eq!(
            usage.to_string(),
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=3Gi,persistentvolumeclaims=1,requests.storage=3Gi"
        );
    }
}
