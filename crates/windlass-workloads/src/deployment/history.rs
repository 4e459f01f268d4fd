//! Which old ReplicaSets are kept for going back to.
//!
//! `revisionHistoryLimit` of them, the newest; one that still has pods, or may have, is never
//! deleted, and does not make another go in its place.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::revision::revision;

/// The old ReplicaSets that are beyond the limit and may go, oldest revision first.
pub(crate) fn surplus<'a>(deployment: &Deployment, old: &[&'a ReplicaSet]) -> Vec<&'a ReplicaSet> {
    let limit = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.revision_history_limit);
    let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else {
        return Vec::new();
    };
    let mut kept: Vec<&ReplicaSet> = old
        .iter()
        .copied()
        .filter(|set| set.metadata.deletion_timestamp.is_none())
        .collect();
    kept.sort_by(|a, b| {
        let key = |set: &ReplicaSet| {
            (
                revision(&set.metadata),
                set.metadata.creation_timestamp.clone().map(|time| time.0),
            )
        };
        key(a).cmp(&key(b))
    });
    let beyond = kept.len().saturating_sub(limit);
    kept.into_iter()
        .take(beyond)
        .filter(|set| is_empty(set))
        .collect()
}

/// Whether the ReplicaSet has no pods, wants none, and has said so since it was last changed.
fn is_empty(set: &ReplicaSet) -> bool {
    let wanted = set
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let status = set.status.as_ref();
    let has = status.map_or(0, |status| status.replicas);
    let observed = status
        .and_then(|status| status.observed_generation)
        .unwrap_or(0);
    wanted == 0 && has == 0 && observed >= set.metadata.generation.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::revision::REVISION;
    use k8s_openapi::api::apps::v1::{DeploymentSpec, ReplicaSetSpec, ReplicaSetStatus};

    fn set(revision: i64, wanted: i32, has: i32) -> ReplicaSet {
        let mut set = ReplicaSet {
            spec: Some(ReplicaSetSpec {
                replicas: Some(wanted),
                ..ReplicaSetSpec::default()
            }),
            status: Some(ReplicaSetStatus {
                replicas: has,
                observed_generation: Some(1),
                ..ReplicaSetStatus::default()
            }),
            ..ReplicaSet::default()
        };
        set.metadata.generation = Some(1);
        set.metadata.annotations = Some([(REVISION.to_owned(), revision.to_string())].into());
        set
    }

    fn keeping(limit: Option<i32>) -> Deployment {
        Deployment {
            spec: Some(DeploymentSpec {
                revision_history_limit: limit,
                ..DeploymentSpec::default()
            }),
            ..Deployment::default()
        }
    }

    fn revisions(surplus: &[&ReplicaSet]) -> Vec<i64> {
        surplus.iter().map(|set| revision(&set.metadata)).collect()
    }

    #[test]
    fn the_oldest_go_first_and_no_limit_keeps_all() {
        let sets = [set(10, 0, 0), set(2, 0, 0), set(3, 0, 0)];
        let old: Vec<&ReplicaSet> = sets.iter().collect();
        assert_eq!(revisions(&surplus(&keeping(Some(1)), &old)), [2, 3]);
        assert_eq!(revisions(&surplus(&keeping(Some(0)), &old)), [2, 3, 10]);
        assert!(surplus(&keeping(Some(3)), &old).is_empty());
        assert!(surplus(&keeping(None), &old).is_empty());
    }

    #[test]
    fn one_with_pods_stays_and_none_goes_instead() {
        let mut unobserved = set(3, 0, 0);
        unobserved.metadata.generation = Some(2);
        let sets = [set(1, 0, 1), set(2, 1, 0), unobserved, set(4, 0, 0)];
        let old: Vec<&ReplicaSet> = sets.iter().collect();
        assert!(surplus(&keeping(Some(1)), &old).is_empty());
        assert_eq!(revisions(&surplus(&keeping(Some(0)), &old)), [4]);
    }
}
