//! What all containers of a pod come to together.
//!
//! Containers that stay count in sum, and so do init containers that stay. Those that come first
//! run one after the other, beside the ones that stay already: the greatest counts.

use serde_json::Value;

use crate::quantity::Quantity;

/// What a pod's containers ask for of a resource; `None` when none of them says.
pub(crate) fn requests(spec: &Value, resource: &str) -> Option<Quantity> {
    total(spec, "requests", resource)
}

/// What a pod's containers are held to of a resource.
pub(crate) fn limits(spec: &Value, resource: &str) -> Option<Quantity> {
    total(spec, "limits", resource)
}

/// What a pod comes to as a whole: what it says itself, or else its containers, and what running it
/// costs besides.
pub(crate) fn with_overhead(spec: &Value, kind: &str, resource: &str) -> Option<Quantity> {
    let amount = |value: &Value| Quantity::parse(value.as_str()?);
    let own = amount(&spec["resources"][kind][resource])
        .filter(|_| matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-"));
    let sum = own.or_else(|| total(spec, kind, resource));
    match (sum, amount(&spec["overhead"][resource])) {
        (Some(sum), Some(overhead)) if kind == "requests" || !sum.is_zero() => {
            Some(sum.plus(overhead))
        }
        (None, Some(overhead)) if kind == "requests" => Some(overhead),
        (sum, _) => sum,
    }
}

fn total(spec: &Value, kind: &str, resource: &str) -> Option<Quantity> {
    let of = |container: &Value| -> Option<Quantity> {
        Quantity::parse(container["resources"][kind][resource].as_str()?)
    };
    let list = |name: &str| spec[name].as_array().into_iter().flatten();
    let add = |sum: Option<Quantity>, more: Option<Quantity>| match (sum, more) {
        (Some(sum), Some(more)) => Some(sum.plus(more)),
        (sum, more) => sum.or(more),
    };
    let larger = |one: Option<Quantity>, other: Option<Quantity>| match (one, other) {
        (Some(one), Some(other)) => Some(if other > one { other } else { one }),
        (one, other) => one.or(other),
    };
    let mut running = list("containers").map(of).fold(None, add);
    let (mut staying, mut first) = (None, None);
    for container in list("initContainers") {
        if container["restartPolicy"] == "Always" {
            running = add(running, of(container));
            staying = add(staying, of(container));
            first = larger(first, staying);
        } else {
            first = larger(first, add(of(container), staying));
        }
    }
    larger(running, first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_runs_at_once_counts_together() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let sidecar =
            |cpu: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
        let cpu = |spec: Value| requests(&spec, "cpu").map(|all| all.to_string());
        assert_eq!(
            cpu(json!({"containers": [container("1"), container("500m")]})).as_deref(),
            Some("1500m")
        );
        assert_eq!(
            cpu(json!({"containers": [container("1")], "initContainers": [sidecar("1"), container("3")]})).as_deref(),
            Some("4")
        );
        assert_eq!(cpu(json!({"containers": [{}]})), None);
    }
}
