//! What is checked of a write to the status of a built-in object.

use serde_json::Value;

use super::at::{At, Causes, nonnegative};
use super::{apps, cluster, job_status, limits, pod};
use crate::resource::Resource;

/// Everything wrong with the status of `new`.
pub(in crate::validation) fn check(new: &Value, old: &Value, resource: &Resource) -> Causes {
    let mut causes = Causes::new();
    if resource.is_custom() {
        return causes;
    }
    let status = At::root(&new["status"], "status");
    let address = (resource.group.as_str(), resource.plural.as_str());
    match address {
        ("", "pods") => pod::check_status(new, old, &mut causes),
        ("", "nodes") => {
            cluster::node(new, false, &mut causes);
            cluster::node_update(new, old, &mut causes);
        }
        ("", "resourcequotas") => {
            limits::amounts(&status, "hard", &mut causes);
            limits::amounts(&status, "used", &mut causes);
        }
        ("apps", "deployments" | "replicasets" | "statefulsets")
        | ("", "replicationcontrollers") => {
            replicas(address.1, &status, old, &mut causes);
        }
        ("apps", "daemonsets") => {
            let numbers = [
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
                "collisionCount",
            ];
            nonnegative(&status, &numbers, &mut causes);
            apps::collisions(&status, old, &mut causes);
        }
        ("batch", "jobs") => job_status::check(new, old, &mut causes),
        ("autoscaling", _) => {
            nonnegative(
                &status,
                &["currentReplicas", "desiredReplicas"],
                &mut causes,
            );
        }
        ("policy", "poddisruptionbudgets") => {
            pod::check_conditions(&status, &mut causes);
            let numbers = [
                "disruptionsAllowed",
                "currentHealthy",
                "desiredHealthy",
                "expectedPods",
            ];
            nonnegative(&status, &numbers, &mut causes);
        }
        _ => {}
    }
    causes
}

fn replicas(plural: &str, status: &At<'_, '_>, old: &Value, causes: &mut Causes) {
    let (numbers, of_all): (&[&str], &[&str]) = match plural {
        "deployments" => (
            &[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
                "terminatingReplicas",
                "collisionCount",
            ],
            &["updatedReplicas", "readyReplicas", "availableReplicas"],
        ),
        "statefulsets" => (
            &[
                "replicas",
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
                "observedGeneration",
                "collisionCount",
            ],
            &[
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
            ],
        ),
        _ => (
            &[
                "replicas",
                "fullyLabeledReplicas",
                "readyReplicas",
                "availableReplicas",
                "observedGeneration",
                "terminatingReplicas",
            ],
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        ),
    };
    nonnegative(status, numbers, causes);
    let ready = if plural == "statefulsets" {
        "status.readyReplicas"
    } else {
        "readyReplicas"
    };
    apps::replica_status(status, of_all, ready, causes);
    if matches!(plural, "deployments" | "statefulsets") {
        apps::collisions(status, old, causes);
    }
}
