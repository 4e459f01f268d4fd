//! What objects take from a quota.
//!
//! A pod takes what its containers ask for and may have, until it has ended; a Service takes its
//! node ports and load balancers, a claim its storage, once more under the name of its class; and
//! everything takes one of its kind.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, PersistentVolumeClaim, Pod, PodSpec, ResourceQuota,
    ScopedResourceSelectorRequirement, Service,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

use crate::pod;
use crate::quantity::{self, Quantity};

/// Amounts by name.
pub(crate) type Usage = BTreeMap<String, Quantity>;

fn one() -> Quantity {
    Quantity::whole(1)
}

/// Adds what one object takes.
pub(crate) fn add(total: &mut Usage, taken: Usage) {
    for (name, amount) in taken {
        *total.entry(name).or_default() += amount;
    }
}

/// What a pod takes.
pub(crate) fn of_pod(pod: &Pod) -> Usage {
    let mut usage = Usage::from([("count/pods".to_owned(), one())]);
    if pod::has_ended(pod) {
        return usage;
    }
    usage.insert("pods".to_owned(), one());
    let none = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&none);
    for (name, amount) in asked(spec, |container| {
        container.resources.as_ref()?.requests.as_ref()
    }) {
        let plain = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage")
            || name.starts_with("hugepages-");
        if plain {
            usage.insert(name.clone(), amount);
        }
        usage.insert(format!("requests.{name}"), amount);
    }
    for (name, amount) in asked(spec, |container| {
        container.resources.as_ref()?.limits.as_ref()
    }) {
        usage.insert(format!("limits.{name}"), amount);
    }
    usage
}

/// What a pod's containers ask for together, or its greediest init container if that is more.
fn asked(
    spec: &PodSpec,
    of: impl Fn(&Container) -> Option<&BTreeMap<String, Written>>,
) -> BTreeMap<String, Quantity> {
    let amounts = |container: &Container| -> Usage {
        let amounts = of(container).into_iter().flatten();
        amounts
            .map(|(name, amount)| (name.clone(), quantity::read(amount)))
            .collect()
    };
    let raise = |into: &mut Usage, from: &Usage| {
        for (name, amount) in from {
            let mine = into.entry(name.clone()).or_default();
            *mine = (*mine).max(*amount);
        }
    };
    let (mut running, mut starting) = (Usage::new(), Usage::new());
    for container in spec.init_containers.iter().flatten() {
        let mut together = running.clone();
        add(&mut together, amounts(container));
        if container.restart_policy.as_deref() == Some("Always") {
            running.clone_from(&together);
        }
        raise(&mut starting, &together);
    }
    for container in &spec.containers {
        add(&mut running, amounts(container));
    }
    raise(&mut running, &starting);
    let overhead = spec.overhead.iter().flatten();
    let overhead = overhead
        .map(|(name, amount)| (name.clone(), quantity::read(amount)))
        .collect();
    add(&mut running, overhead);
    running
}

/// What a Service takes.
pub(crate) fn of_service(service: &Service) -> Usage {
    let spec = service.spec.clone().unwrap_or_default();
    let ports = spec.ports.unwrap_or_default();
    let mut usage = Usage::from([
        ("services".to_owned(), one()),
        ("count/services".to_owned(), one()),
    ]);
    match spec.type_.as_deref() {
        Some("NodePort") => {
            usage.insert(
                "services.nodeports".to_owned(),
                Quantity::whole(ports.len()),
            );
        }
        Some("LoadBalancer") => {
            let allocated = ports
                .iter()
                .filter(|port| port.node_port.unwrap_or(0) != 0)
                .count();
            let is_off = spec.allocate_load_balancer_node_ports == Some(false);
            let count = if is_off { allocated } else { ports.len() };
            usage.insert("services.nodeports".to_owned(), Quantity::whole(count));
            usage.insert("services.loadbalancers".to_owned(), one());
        }
        _ => {}
    }
    usage
}

/// What a claim takes.
pub(crate) fn of_claim(claim: &PersistentVolumeClaim) -> Usage {
    let spec = claim.spec.clone().unwrap_or_default();
    let requests = spec.resources.and_then(|resources| resources.requests);
    let storage = requests.and_then(|requests| requests.get("storage").map(quantity::read));
    let mut usage = Usage::from([
        ("persistentvolumeclaims".to_owned(), one()),
        ("count/persistentvolumeclaims".to_owned(), one()),
    ]);
    let class = spec.storage_class_name.filter(|class| !class.is_empty());
    let class = class.map(|class| format!("{class}.storageclass.storage.k8s.io"));
    if let Some(class) = &class {
        usage.insert(format!("{class}/persistentvolumeclaims"), one());
    }
    if let Some(storage) = storage {
        usage.insert("requests.storage".to_owned(), storage);
        if let Some(class) = &class {
            usage.insert(format!("{class}/requests.storage"), storage);
        }
    }
    usage
}

/// Whether a quota limits anything but pods; one with scopes does not.
pub(crate) fn has_scopes(quota: &ResourceQuota) -> bool {
    !requirements(quota).is_empty()
}

fn requirements(quota: &ResourceQuota) -> Vec<ScopedResourceSelectorRequirement> {
    let spec = quota.spec.clone().unwrap_or_default();
    let plain = spec.scopes.unwrap_or_default().into_iter();
    let plain = plain.map(|scope_name| ScopedResourceSelectorRequirement {
        scope_name,
        operator: "Exists".to_owned(),
        values: None,
    });
    let selector = spec
        .scope_selector
        .and_then(|selector| selector.match_expressions);
    plain.chain(selector.unwrap_or_default()).collect()
}

/// Whether a pod is in all of a quota's scopes.
pub(crate) fn covers(quota: &ResourceQuota, pod: &Pod) -> bool {
    requirements(quota)
        .iter()
        .all(|requirement| is_in_scope(requirement, pod))
}

fn is_in_scope(requirement: &ScopedResourceSelectorRequirement, pod: &Pod) -> bool {
    let none = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&none);
    let is_terminating = spec
        .active_deadline_seconds
        .is_some_and(|seconds| seconds >= 0);
    match requirement.scope_name.as_str() {
        "Terminating" => is_terminating,
        "NotTerminating" => !is_terminating,
        "BestEffort" => is_best_effort(spec),
        "NotBestEffort" => !is_best_effort(spec),
        "PriorityClass" => {
            let class = spec.priority_class_name.clone().unwrap_or_default();
            let values = requirement.values.as_deref().unwrap_or_default();
            match requirement.operator.as_str() {
                "In" => values.contains(&class),
                "NotIn" => !values.contains(&class),
                "Exists" => !class.is_empty(),
                "DoesNotExist" => class.is_empty(),
                _ => false,
            }
        }
        "CrossNamespacePodAffinity" => reaches_out(spec),
        _ => false,
    }
}

fn is_best_effort(spec: &PodSpec) -> bool {
    let containers = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);
    let mut amounts = containers
        .filter_map(|container| container.resources.as_ref())
        .flat_map(|resources| {
            let requests = resources.requests.iter().flatten();
            requests.chain(resources.limits.iter().flatten())
        });
    !amounts.any(|(name, amount)| {
        matches!(name.as_str(), "cpu" | "memory") && !quantity::read(amount).is_zero()
    })
}

/// Whether a pod's affinity looks at other namespaces.
fn reaches_out(spec: &PodSpec) -> bool {
    let affinity = spec.affinity.clone().unwrap_or_default();
    let near = affinity.pod_affinity.unwrap_or_default();
    let apart = affinity.pod_anti_affinity.unwrap_or_default();
    let required = near
        .required_during_scheduling_ignored_during_execution
        .into_iter()
        .flatten();
    let required = required.chain(
        apart
            .required_during_scheduling_ignored_during_execution
            .into_iter()
            .flatten(),
    );
    let preferred = near
        .preferred_during_scheduling_ignored_during_execution
        .into_iter()
        .flatten();
    let preferred = preferred.chain(
        apart
            .preferred_during_scheduling_ignored_during_execution
            .into_iter()
            .flatten(),
    );
    let mut terms = required.chain(preferred.map(|term| term.pod_affinity_term));
    terms.any(|term| {
        term.namespace_selector.is_some() || term.namespaces.is_some_and(|names| !names.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn written(usage: &Usage) -> BTreeMap<String, String> {
        usage
            .iter()
            .map(|(name, amount)| (name.clone(), amount.to_string()))
            .collect()
    }

    fn pod(spec: Value) -> Pod {
        serde_json::from_value(json!({"spec": spec, "status": {"phase": "Running"}})).unwrap()
    }

    fn asking(requests: Value, limits: Value) -> Value {
        json!({"containers": [{"name": "c", "resources": {"requests": requests, "limits": limits}}]})
    }

    #[test]
    fn a_pod_takes_what_it_asks_for_until_it_has_ended() {
        let mut one = pod(asking(
            json!({"cpu": "500m", "memory": "1Gi", "gpu": "2"}),
            json!({"cpu": "1"}),
        ));
        let usage = written(&of_pod(&one));
        for (name, amount) in [
            ("pods", "1"),
            ("count/pods", "1"),
            ("cpu", "500m"),
            ("requests.cpu", "500m"),
            ("requests.memory", "1Gi"),
            ("requests.gpu", "2"),
            ("limits.cpu", "1"),
        ] {
            assert_eq!(usage.get(name).map(String::as_str), Some(amount), "{name}");
        }
        assert!(!usage.contains_key("gpu"));
        one.status.as_mut().unwrap().phase = Some("Succeeded".to_owned());
        assert_eq!(
            written(&of_pod(&one)).keys().collect::<Vec<_>>(),
            ["count/pods"]
        );
    }

    #[test]
    fn services_and_claims_take_what_they_are() {
        let service: Service = serde_json::from_value(json!({"spec": {
            "type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2}],
        }}))
        .unwrap();
        let usage = written(&of_service(&service));
        assert_eq!(usage["services.nodeports"], "2");
        assert_eq!(usage["services.loadbalancers"], "1");
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({"spec": {
            "storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}},
        }}))
        .unwrap();
        let usage = written(&of_claim(&claim));
        assert_eq!(usage["requests.storage"], "5Gi");
        assert_eq!(
            usage["fast.storageclass.storage.k8s.io/requests.storage"],
            "5Gi"
        );
        assert_eq!(
            usage["fast.storageclass.storage.k8s.io/persistentvolumeclaims"],
            "1"
        );
    }

    #[test]
    fn scopes_choose_pods() {
        let quota = |scope: &str| -> ResourceQuota {
            serde_json::from_value(json!({"spec": {"scopes": [scope]}})).unwrap()
        };
        let effortless = pod(json!({"containers": []}));
        let short = pod(json!({"containers": [], "activeDeadlineSeconds": 5}));
        let solid = pod(asking(json!({"cpu": "1"}), json!({})));
        assert!(covers(&quota("BestEffort"), &effortless) && !covers(&quota("BestEffort"), &solid));
        assert!(covers(&quota("NotBestEffort"), &solid));
        assert!(covers(&quota("Terminating"), &short) && !covers(&quota("Terminating"), &solid));
        assert!(covers(&quota("NotTerminating"), &solid));
        let selector: ResourceQuota = serde_json::from_value(json!({"spec": {"scopeSelector": {
            "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}],
        }}}))
        .unwrap();
        assert!(covers(
            &selector,
            &pod(json!({"containers": [], "priorityClassName": "high"}))
        ));
        assert!(!covers(&selector, &effortless));
    }
}
