//! The names of a StatefulSet's pods and claims: `<set>-<ordinal>`, `<template>-<set>-<ordinal>`.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::Pod;

/// The name before the last dash, and the number after it.
pub(crate) fn parts(pod: &Pod) -> Option<(&str, i32)> {
    let (parent, digits) = pod.metadata.name.as_deref()?.rsplit_once('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(())?;
    Some((parent, digits.parse().ok()?))
}

/// The ordinal of a pod of this set.
pub(crate) fn ordinal(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let (parent, ordinal) = parts(pod)?;
    (set.metadata.name.as_deref() == Some(parent)).then_some(ordinal)
}

/// The first ordinal.
pub(crate) fn start(set: &StatefulSet) -> i32 {
    let ordinals = spec(set).and_then(|spec| spec.ordinals.as_ref());
    ordinals.and_then(|ordinals| ordinals.start).unwrap_or(0)
}

/// How many pods are wanted.
pub(crate) fn replicas(set: &StatefulSet) -> i32 {
    spec(set).and_then(|spec| spec.replicas).unwrap_or(1).max(0)
}

/// The ordinals that are wanted.
pub(crate) fn range(set: &StatefulSet) -> std::ops::Range<i32> {
    let start = start(set);
    start..start.saturating_add(replicas(set))
}

/// The name of the pod with this ordinal.
pub(crate) fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!(
        "{}-{ordinal}",
        set.metadata.name.as_deref().unwrap_or_default()
    )
}

/// The name of the claim that a template makes for the pod with this ordinal.
pub(crate) fn claim_name(set: &StatefulSet, template: &str, ordinal: i32) -> String {
    format!("{template}-{}", pod_name(set, ordinal))
}

pub(crate) fn spec(set: &StatefulSet) -> Option<&StatefulSetSpec> {
    set.spec.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::pod;

    #[test]
    fn names_are_read_from_the_last_dash() {
        assert_eq!(parts(&pod("my-db-12")), Some(("my-db", 12)));
        assert_eq!(parts(&pod("web-x")), None);
        assert_eq!(parts(&pod("web-+1")), None);
        assert_eq!(parts(&pod("web-")), None);
        assert_eq!(parts(&pod("web")), None);
    }
}
