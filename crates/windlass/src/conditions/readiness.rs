//! Whether an object does what it is for.

use serde_json::Value;

use crate::kind::KindInfo;

/// Whether an owned object is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    /// Not yet, for this reason.
    NotYet(String),
}

impl Readiness {
    pub(crate) fn why_not(&self) -> Option<&str> {
        match self {
            Self::Ready => None,
            Self::NotYet(why) => Some(why),
        }
    }
}

/// Judges an object by its status, as far as its kind is known; others are ready when they exist.
pub(crate) fn readiness(kind: &KindInfo, object: &Value) -> Readiness {
    let number = |path: &str| object.pointer(path).and_then(Value::as_i64);
    let name = object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let what = kind.kind.to_lowercase();
    let current = number("/status/observedGeneration") >= number("/metadata/generation");
    let counted = |want: i64, have: &str| {
        let have = number(have).unwrap_or(0);
        if have >= want && current {
            Readiness::Ready
        } else {
            Readiness::NotYet(format!("{what} {name} has {have} of {want} ready"))
        }
    };
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") => {
            let want = number("/spec/replicas").unwrap_or(1);
            // Old pods count as available until they are replaced: all must be of this revision.
            if number("/status/updatedReplicas").unwrap_or(0) < want {
                let updated = number("/status/updatedReplicas").unwrap_or(0);
                return Readiness::NotYet(format!("{what} {name} has {updated} of {want} updated"));
            }
            counted(want, "/status/availableReplicas")
        }
        ("apps", "StatefulSet" | "ReplicaSet") => counted(
            number("/spec/replicas").unwrap_or(1),
            "/status/readyReplicas",
        ),
        ("apps", "DaemonSet") => counted(
            number("/status/desiredNumberScheduled").unwrap_or(0),
            "/status/numberReady",
        ),
        ("batch", "Job") => condition(object, "Complete", &what, name),
        ("", "Pod") => condition(object, "Ready", &what, name),
        _ => Readiness::Ready,
    }
}

fn condition(object: &Value, wanted: &str, what: &str, name: &str) -> Readiness {
    let conditions = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let holds = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == wanted && condition["status"] == "True");
    if holds {
        Readiness::Ready
    } else {
        Readiness::NotYet(format!("{what} {name} is not {}", wanted.to_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployment_is_ready_when_all_of_this_revision_are_available() {
        let kind = KindInfo::of::<Deployment>();
        let deployment = |generation: i64, updated: i64, available: i64| {
            json!({
                "metadata": {"name": "d", "generation": 2},
                "spec": {"replicas": 3},
                "status": {"observedGeneration": generation, "updatedReplicas": updated,
                           "availableReplicas": available},
            })
        };
        assert_eq!(readiness(&kind, &deployment(2, 3, 3)), Readiness::Ready);
        assert!(readiness(&kind, &deployment(1, 3, 3)).why_not().is_some());
        assert_eq!(
            readiness(&kind, &deployment(2, 1, 3)).why_not(),
            Some("deployment d has 1 of 3 updated")
        );
        assert_eq!(
            readiness(&kind, &deployment(2, 3, 2)).why_not(),
            Some("deployment d has 2 of 3 ready")
        );
    }

    #[test]
    fn what_has_no_known_readiness_is_ready() {
        assert_eq!(
            readiness(&KindInfo::of::<Service>(), &json!({})),
            Readiness::Ready
        );
    }
}
