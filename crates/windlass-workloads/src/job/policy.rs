//! What a Job's policies say about pods that failed and indexes that succeeded.

use k8s_openapi::api::batch::v1::{
    Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicy,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::indexes::Indexes;

/// What a failed pod means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It counts towards the limit.
    Counts,
    /// It does not.
    Ignored,
    /// Its index has failed for good.
    FailsIndex,
    /// The whole Job has failed, for this reason.
    FailsJob(String),
}

/// What the pod failure policy says about a failed pod.
pub(crate) fn failure(job: &Job, pod: &Pod) -> Failure {
    let policy = job
        .spec
        .as_ref()
        .and_then(|spec| spec.pod_failure_policy.as_ref());
    let rules = policy.map_or(&[][..], |policy| &policy.rules);
    for (index, rule) in rules.iter().enumerate() {
        let Some(what) = matched(rule, pod) else {
            continue;
        };
        match rule.action.as_str() {
            "Ignore" => return Failure::Ignored,
            "FailIndex" => return Failure::FailsIndex,
            "Count" => return Failure::Counts,
            "FailJob" => {
                return Failure::FailsJob(format!("{what} matching FailJob rule at index {index}"));
            }
            _ => {}
        }
    }
    Failure::Counts
}

/// What of the pod a rule matches, in words.
fn matched(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let status = pod.status.as_ref()?;
    if let Some(requirement) = &rule.on_exit_codes {
        let of = |statuses: &Option<Vec<ContainerStatus>>| {
            statuses
                .iter()
                .flatten()
                .find_map(|status| exit_code(status, requirement))
        };
        let (container, code) =
            of(&status.container_statuses).or_else(|| of(&status.init_container_statuses))?;
        return Some(format!(
            "Container {container} for pod {namespace}/{name} failed with exit code {code}"
        ));
    }
    let patterns = rule.on_pod_conditions.as_deref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let condition = conditions.iter().find(|condition| {
        patterns.iter().any(|pattern| {
            pattern.type_ == condition.type_
                && pattern.status.as_deref().unwrap_or("True") == condition.status
        })
    })?;
    Some(format!(
        "Pod {namespace}/{name} has condition {}",
        condition.type_
    ))
}

/// The container and its exit code, if the requirement asks for it.
fn exit_code(
    status: &ContainerStatus,
    requirement: &PodFailurePolicyOnExitCodesRequirement,
) -> Option<(String, i32)> {
    let ended = status.state.as_ref()?.terminated.as_ref()?;
    let named = requirement
        .container_name
        .as_ref()
        .is_none_or(|name| *name == status.name);
    let listed = requirement.values.contains(&ended.exit_code);
    let asked = match requirement.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    };
    (named && ended.exit_code != 0 && asked).then(|| (status.name.clone(), ended.exit_code))
}

/// The sentence that says which rule of the success policy is met, if one is.
pub(crate) fn success(
    policy: Option<&SuccessPolicy>,
    completions: i32,
    succeeded: &Indexes,
) -> Option<String> {
    if succeeded.is_empty() {
        return None;
    }
    let rules = policy.map_or(&[][..], |policy| &policy.rules);
    let met = rules
        .iter()
        .position(|rule| match &rule.succeeded_indexes {
            Some(text) => {
                let wanted = Indexes::parse(text, completions);
                let shared = wanted.shared(succeeded);
                !wanted.is_empty()
                    && (shared == wanted.total()
                        || rule.succeeded_count.is_some_and(|count| shared >= count))
            }
            None => rule
                .succeeded_count
                .is_some_and(|count| succeeded.total() >= count),
        })?;
    Some(format!("Matched rules at index {met}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn job(rules: Value) -> Job {
        serde_json::from_value(json!({
            "spec": {"template": {}, "podFailurePolicy": {"rules": rules}},
        }))
        .unwrap()
    }

    fn failed(code: i32) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n"},
            "status": {
                "phase": "Failed",
                "conditions": [{"type": "DisruptionTarget", "status": "True"}],
                "containerStatuses": [{
                    "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": code}},
                }],
            },
        }))
        .unwrap()
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = json!([
            {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}},
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [4]}},
            {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [5], "containerName": "main"}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        ]);
        let job = job(rules);
        assert_eq!(failure(&job, &failed(3)), Failure::Ignored);
        assert_eq!(failure(&job, &failed(4)), Failure::FailsIndex);
        assert_eq!(
            failure(&job, &failed(42)),
            Failure::FailsJob(
                "Container main for pod n/p failed with exit code 42 matching FailJob rule at index 2"
                    .to_owned()
            )
        );
        assert_eq!(failure(&job, &failed(5)), Failure::Ignored);
        assert_eq!(failure(&Job::default(), &failed(1)), Failure::Counts);
    }

    #[test]
    fn success_needs_all_of_a_rule() {
        let policy: SuccessPolicy = serde_json::from_value(json!({"rules": [
            {"succeededIndexes": "0,2-3"},
            {"succeededIndexes": "5-9", "succeededCount": 2},
            {"succeededCount": 6},
        ]}))
        .unwrap();
        let met = |indexes: &[i32]| {
            success(
                Some(&policy),
                10,
                &Indexes::default().with(indexes.iter().copied()),
            )
        };
        assert_eq!(met(&[0, 2]), None);
        assert_eq!(met(&[0, 2, 3]).as_deref(), Some("Matched rules at index 0"));
        assert_eq!(met(&[5, 9]).as_deref(), Some("Matched rules at index 1"));
        assert_eq!(met(&[0, 1, 2, 4, 5]), None);
        assert_eq!(met(&[]), None);
    }
}
