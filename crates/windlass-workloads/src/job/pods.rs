//! The pods of a Job: how they are marked, told apart and made.
//!
//! Every pod carries a finalizer until its end has been counted, so that none is lost. A pod of an
//! indexed Job has its index in an annotation, a label, its hostname and its environment.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::policy::{self, Failure};
use crate::pod;

/// Keeps a pod until it has been counted.
pub(crate) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
const VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// The longest name to which a suffix can be generated.
const PREFIX: usize = 58;

pub(crate) fn is_indexed(job: &Job) -> bool {
    let mode = job
        .spec
        .as_ref()
        .and_then(|spec| spec.completion_mode.as_deref());
    mode == Some("Indexed")
}

/// Whether only pods that have ended are replaced.
pub(crate) fn replaces_only_ended(job: &Job) -> bool {
    job.spec.as_ref().is_some_and(|spec| {
        spec.pod_replacement_policy.as_deref() == Some("Failed")
            || spec.pod_failure_policy.is_some()
    })
}

/// Whether the pod waits to be counted.
pub(crate) fn is_tracked(pod: &Pod) -> bool {
    let finalizers = pod.metadata.finalizers.as_deref().unwrap_or_default();
    finalizers.iter().any(|name| name == FINALIZER)
}

/// The finalizers without the one that waits for counting.
pub(crate) fn untracked(pod: &Pod) -> Vec<String> {
    let finalizers = pod.metadata.finalizers.clone().unwrap_or_default();
    finalizers
        .into_iter()
        .filter(|name| name != FINALIZER)
        .collect()
}

/// Whether the pod counts as failed.
pub(crate) fn has_failed(job: &Job, pod: &Pod) -> bool {
    match pod::phase(pod) {
        "Failed" => true,
        "Succeeded" => false,
        _ => pod::is_terminating(pod) && !replaces_only_ended(job),
    }
}

fn number(pod: &Pod, key: &str) -> Option<i32> {
    let text = pod.metadata.annotations.as_ref()?.get(key)?;
    text.parse().ok().filter(|number| *number >= 0)
}

/// The pod's completion index.
pub(crate) fn index(pod: &Pod) -> Option<i32> {
    number(pod, INDEX)
}

/// How often the pod's index had failed before it, as far as that counts.
pub(crate) fn failures(pod: &Pod) -> i32 {
    number(pod, FAILURES).unwrap_or(0)
}

/// How often the pod's index had failed before it.
pub(crate) fn all_failures(pod: &Pod) -> i32 {
    failures(pod).saturating_add(number(pod, IGNORED).unwrap_or(0))
}

/// A pod of the Job; `before` is the failed pod of the same index whose place it takes.
pub(crate) fn new(job: &Job, index: Option<i32>, before: Option<&Pod>) -> Pod {
    let spec = job.spec.clone().unwrap_or_default();
    let template = spec.template;
    let metadata = template.metadata.unwrap_or_default();
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let mut finalizers = metadata.finalizers.unwrap_or_default();
    if !finalizers.iter().any(|name| name == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    let mut pod = Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: job.metadata.namespace.clone(),
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizers: Some(finalizers),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    };
    let Some(index) = index else {
        return pod;
    };
    let suffix = format!("-{index}-");
    let prefix: String = name.chars().take(PREFIX - suffix.len()).collect();
    pod.metadata.generate_name = Some(format!("{prefix}{suffix}"));
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(INDEX.to_owned(), index.to_string());
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(INDEX.to_owned(), index.to_string());
    if spec.backoff_limit_per_index.is_some() {
        let (counted, ignored) = before.map_or((0, 0), |before| {
            let ignored = number(before, IGNORED).unwrap_or(0);
            match policy::failure(job, before) {
                Failure::Ignored => (failures(before), ignored + 1),
                _ => (failures(before) + 1, ignored),
            }
        });
        annotations.insert(FAILURES.to_owned(), counted.to_string());
        if ignored > 0 {
            annotations.insert(IGNORED.to_owned(), ignored.to_string());
        }
    }
    let pod_spec = pod.spec.get_or_insert_default();
    pod_spec.hostname = Some(format!("{name}-{index}"));
    let inits = pod_spec.init_containers.iter_mut().flatten();
    for container in inits.chain(&mut pod_spec.containers) {
        tell_index(container);
    }
    pod
}

/// Gives the container its index in a variable, unless it has one of that name.
fn tell_index(container: &mut Container) {
    let env = container.env.get_or_insert_default();
    if env.iter().any(|variable| variable.name == VARIABLE) {
        return;
    }
    env.push(EnvVar {
        name: VARIABLE.to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: format!("metadata.labels['{INDEX}']"),
                api_version: None,
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    });
}
