//! Revisions: which ReplicaSet came when.
//!
//! Each ReplicaSet of a Deployment carries the number of the roll-out that made it the newest, and
//! the Deployment carries the number of its newest one; `kubectl rollout history` and `undo` read
//! them. Going back to an older template does not make a new ReplicaSet: the old one gets a new
//! number, and the numbers it had before are kept beside it.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::limits::Limits;

/// The number of the roll-out.
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The numbers a ReplicaSet had before.
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The wanted replicas of the Deployment when it last sized this ReplicaSet.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The most pods of the Deployment when it last sized this ReplicaSet.
const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// What `kubectl apply` remembers: of the Deployment, never of its ReplicaSets.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Asks for a roll-back in an API version that is gone.
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

/// The annotations that a Deployment does not hand down to its ReplicaSets.
const NOT_HANDED_DOWN: [&str; 6] = [REVISION, HISTORY, DESIRED, MAX, LAST_APPLIED, ROLLBACK_TO];

/// How long the list of former numbers may grow.
const HISTORY_LENGTH: usize = 2000;

type Annotations = BTreeMap<String, String>;

/// The revision of a ReplicaSet or a Deployment; one without is 0.
pub(crate) fn revision(meta: &ObjectMeta) -> i64 {
    number(meta.annotations.as_ref(), REVISION).unwrap_or(0)
}

/// The revision that comes after all of these.
pub(crate) fn next(old: &[&ReplicaSet]) -> i64 {
    old.iter()
        .map(|set| revision(&set.metadata))
        .max()
        .unwrap_or(0)
        + 1
}

/// The wanted replicas of the Deployment when it last sized this ReplicaSet.
pub(crate) fn desired_replicas(set: &ReplicaSet) -> Option<i32> {
    number(set.metadata.annotations.as_ref(), DESIRED)
}

/// The most pods of the Deployment when it last sized this ReplicaSet.
pub(crate) fn max_replicas(set: &ReplicaSet) -> Option<i32> {
    number(set.metadata.annotations.as_ref(), MAX)
}

/// The annotations of the newest ReplicaSet: those it has, those of its Deployment, and its
/// revision raised to `newest` unless it is there already.
pub(crate) fn annotations(
    deployment: &Deployment,
    current: &Annotations,
    newest: i64,
) -> Annotations {
    let mut annotations = current.clone();
    for (key, value) in deployment.metadata.annotations.iter().flatten() {
        if !NOT_HANDED_DOWN.contains(&key.as_str()) {
            annotations.insert(key.clone(), value.clone());
        }
    }
    let before = current.get(REVISION);
    let before_number = before.and_then(|text| text.parse::<i64>().ok());
    if before_number.is_none_or(|before| before < newest) {
        annotations.insert(REVISION.to_owned(), newest.to_string());
        if let Some(before) = before {
            let history = annotations.get(HISTORY).map_or("", String::as_str);
            let history = extended(history, before);
            annotations.insert(HISTORY.to_owned(), history);
        }
    }
    annotations
}

/// The annotations that record the size a Deployment wanted when it sized a ReplicaSet.
pub(crate) fn size_annotations(limits: Limits) -> [(&'static str, String); 2] {
    [
        (DESIRED, limits.desired.to_string()),
        (MAX, limits.max_total().to_string()),
    ]
}

/// The list of former numbers with one more, the oldest dropped when it grows too long.
fn extended(history: &str, number: &str) -> String {
    let mut numbers: Vec<&str> = history
        .split(',')
        .filter(|number| !number.is_empty())
        .collect();
    numbers.push(number);
    let mut length: usize = numbers.iter().map(|number| number.len() + 1).sum();
    while length > HISTORY_LENGTH + 1 && numbers.len() > 1 {
        length -= numbers.remove(0).len() + 1;
    }
    numbers.join(",")
}

fn number<N: std::str::FromStr>(annotations: Option<&Annotations>, key: &str) -> Option<N> {
    annotations?.get(key)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotated(pairs: &[(&str, &str)]) -> Annotations {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn replica_set(annotations: &[(&str, &str)]) -> ReplicaSet {
        let mut set = ReplicaSet::default();
        set.metadata.annotations = Some(annotated(annotations));
        set
    }

    #[test]
    fn the_next_revision_follows_the_highest() {
        let sets = [
            replica_set(&[(REVISION, "3")]),
            replica_set(&[(REVISION, "11")]),
            replica_set(&[]),
        ];
        assert_eq!(next(&sets.iter().collect::<Vec<_>>()), 12);
        assert_eq!(next(&[]), 1);
    }

    #[test]
    fn hands_down_what_its_author_wrote_and_nothing_of_its_own() {
        let mut deployment = Deployment::default();
        deployment.metadata.annotations = Some(annotated(&[
            ("team", "blue"),
            (LAST_APPLIED, "{}"),
            (REVISION, "9"),
            (DESIRED, "7"),
        ]));
        let annotations = annotations(&deployment, &annotated(&[("mine", "kept")]), 2);
        assert_eq!(
            annotations,
            annotated(&[("mine", "kept"), ("team", "blue"), (REVISION, "2")])
        );
    }

    #[test]
    fn going_back_gives_a_new_number_and_remembers_the_old_one() {
        let deployment = Deployment::default();
        let first = annotations(&deployment, &annotated(&[(REVISION, "1")]), 3);
        assert_eq!(first, annotated(&[(REVISION, "3"), (HISTORY, "1")]));
        let second = annotations(&deployment, &first, 5);
        assert_eq!(second, annotated(&[(REVISION, "5"), (HISTORY, "1,3")]));
        assert_eq!(annotations(&deployment, &second, 5), second);
        assert_eq!(annotations(&deployment, &second, 4), second);
    }

    #[test]
    fn the_history_stays_short() {
        let long = vec!["1234567"; 300].join(",");
        let extended = extended(&long, "8");
        assert!(extended.len() <= HISTORY_LENGTH);
        assert!(extended.ends_with(",8"));
    }
}
