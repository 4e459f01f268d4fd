//! Which pods go first when there are too many.
//!
//! The one whose loss costs least: a pod on no node before a bound one, pending before unknown
//! before running, not ready before ready, then the lower `pod-deletion-cost`, the pod on the node
//! that already has the most of its kin, the one that became ready more recently, the one that
//! restarted more often, and at last the younger one. Ages are compared on a logarithmic scale, so
//! that among pods of about the same age the choice is as good as random (their uid decides)
//! rather than always the youngest, which would empty the node or zone that was filled last.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use crate::pod;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The `count` pods of `pods` that should go first.
///
/// `kin` are the active pods of every ReplicaSet of the same owner: a pod that shares its node
/// with many of them goes before one that does not.
pub(crate) fn to_delete<'a>(
    pods: &[&'a Pod],
    kin: &[&Pod],
    count: usize,
    now: Timestamp,
) -> Vec<&'a Pod> {
    let mut kin_per_node: BTreeMap<&str, usize> = BTreeMap::new();
    for node in kin.iter().filter_map(|pod| pod::node_name(pod)) {
        *kin_per_node.entry(node).or_default() += 1;
    }
    let mut ranked: Vec<(Rank<'a>, &'a Pod)> = pods
        .iter()
        .map(|pod| {
            let doubled = pod::node_name(pod).map_or(0, |node| {
                kin_per_node.get(node).copied().unwrap_or_default()
            });
            (Rank::of(pod, doubled, now), *pod)
        })
        .collect();
    ranked.sort_by(|(a, _), (b, _)| a.cmp(b));
    ranked.into_iter().take(count).map(|(_, pod)| pod).collect()
}

/// The facts that decide, most important first: the smallest rank goes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank<'a> {
    bound: bool,
    phase: u8,
    ready: bool,
    cost: i32,
    doubled: Reverse<usize>,
    ready_for: Age,
    restarts: Reverse<i32>,
    age: Age,
    uid: &'a str,
}

impl<'a> Rank<'a> {
    fn of(pod: &'a Pod, doubled: usize, now: Timestamp) -> Self {
        let ready = pod::is_ready(pod);
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        Self {
            bound: pod::node_name(pod).is_some(),
            phase: match pod::phase(pod) {
                "Pending" => 0,
                "Unknown" => 1,
                _ => 2,
            },
            ready,
            cost: deletion_cost(pod),
            doubled: Reverse(doubled),
            ready_for: if ready {
                Age::since(pod::ready_since(pod), now)
            } else {
                Age(Magnitude::Unknown)
            },
            restarts: Reverse(restarts(pod)),
            age: Age::since(created, now),
            uid: pod.metadata.uid.as_deref().unwrap_or_default(),
        }
    }
}

/// A length of time by its power of two; one nobody recorded is the shortest.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Age(Magnitude);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Magnitude {
    Unknown,
    NotYet,
    PowerOfTwo(u32),
}

impl Age {
    fn since(time: Option<Timestamp>, now: Timestamp) -> Self {
        let Some(time) = time else {
            return Self(Magnitude::Unknown);
        };
        let nanoseconds = now.duration_since(time).as_nanos();
        Self(
            match u128::try_from(nanoseconds)
                .ok()
                .and_then(u128::checked_ilog2)
            {
                Some(power) => Magnitude::PowerOfTwo(power),
                None => Magnitude::NotYet,
            },
        )
    }
}

/// What its owner says the loss of this pod costs; nothing said, or nonsense, is 0.
fn deletion_cost(pod: &Pod) -> i32 {
    pod.metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(DELETION_COST))
        .and_then(|cost| cost.parse().ok())
        .unwrap_or(0)
}

/// The restarts of the container of the pod that restarted most.
fn restarts(pod: &Pod) -> i32 {
    pod.status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten())
        .map(|container| container.restart_count)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::{at, bound, in_phase, pod, ready};
    use k8s_openapi::api::core::v1::ContainerStatus;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn order(a: &Pod, b: &Pod, now: Timestamp) -> Ordering {
        Rank::of(a, 0, now).cmp(&Rank::of(b, 0, now))
    }

    fn names(pods: &[&Pod]) -> Vec<String> {
        pods.iter()
            .filter_map(|pod| pod.metadata.name.clone())
            .collect()
    }

    fn created(mut pod: Pod, seconds: i64) -> Pod {
        pod.metadata.creation_timestamp = Some(Time(at(seconds)));
        pod
    }

    fn restarted(mut pod: Pod, restart_count: i32) -> Pod {
        pod.status.get_or_insert_default().container_statuses = Some(vec![ContainerStatus {
            restart_count,
            ..ContainerStatus::default()
        }]);
        pod
    }

    fn costing(mut pod: Pod, cost: &str) -> Pod {
        pod.metadata
            .annotations
            .get_or_insert_default()
            .insert(DELETION_COST.to_owned(), cost.to_owned());
        pod
    }

    #[test]
    fn the_least_useful_go_first() {
        let pods = [
            ready(bound(pod("old-ready"), "n"), 10),
            ready(bound(pod("new-ready"), "n"), 990_000),
            bound(in_phase(pod("running"), "Running"), "n"),
            bound(in_phase(pod("unknown"), "Unknown"), "n"),
            bound(pod("pending"), "n"),
            pod("unassigned"),
        ];
        let pods: Vec<&Pod> = pods.iter().collect();
        assert_eq!(
            names(&to_delete(&pods, &[], 6, at(1_000_000))),
            [
                "unassigned",
                "pending",
                "unknown",
                "running",
                "new-ready",
                "old-ready"
            ]
        );
        assert_eq!(
            names(&to_delete(&pods, &[], 2, at(1_000_000))),
            ["unassigned", "pending"]
        );
    }

    #[test]
    fn cost_outweighs_age_but_not_readiness() {
        let cheap = costing(ready(bound(pod("cheap"), "n"), 10), "-1");
        let young = ready(bound(pod("young"), "n"), 999_999);
        let unready = costing(bound(in_phase(pod("unready"), "Running"), "n"), "100");
        let nonsense = costing(young.clone(), "a lot");
        let pods = [&young, &cheap, &unready];
        assert_eq!(
            names(&to_delete(&pods, &[], 3, at(1_000_000))),
            ["unready", "cheap", "young"]
        );
        assert_eq!(order(&nonsense, &young, at(1_000_000)), Ordering::Equal);
    }

    #[test]
    fn crowded_nodes_give_first() {
        let a1 = ready(bound(pod("a1"), "a"), 10);
        let a2 = ready(bound(pod("a2"), "a"), 10);
        let b1 = ready(bound(pod("b1"), "b"), 10);
        let pods = [&b1, &a2, &a1];
        assert_eq!(names(&to_delete(&pods, &pods, 2, at(1000))), ["a1", "a2"]);
    }

    #[test]
    fn restarts_then_youth_break_ties() {
        let calm = created(ready(bound(pod("calm"), "n"), 10), 0);
        let restless = restarted(calm.clone(), 3);
        let young = created(calm.clone(), 999_990);
        let now = at(1_000_000);
        assert_eq!(order(&restless, &calm, now), Ordering::Less);
        assert_eq!(order(&restless, &young, now), Ordering::Less);
        assert_eq!(order(&young, &calm, now), Ordering::Less);
    }

    #[test]
    fn about_equal_ages_count_as_equal() {
        let now = at(1_000_000);
        let a = created(ready(bound(pod("a"), "n"), 10), 10);
        let b = created(ready(bound(pod("b"), "n"), 12), 12);
        // The uid decides, not the two seconds.
        assert_eq!(order(&a, &b, now), Ordering::Less);
        let b_older = created(ready(bound(pod("b"), "n"), 8), 8);
        assert_eq!(order(&a, &b_older, now), Ordering::Less);
    }

    proptest! {
        #[test]
        fn a_pod_that_goes_is_never_more_useful_than_one_that_stays(
            shapes in prop::collection::vec((any::<bool>(), 0..3usize, any::<bool>(), 0..1000i64), 1..12),
            count in 0..12usize,
        ) {
            let pods: Vec<Pod> = shapes.iter().enumerate().map(|(index, (on_node, phase, is_ready, since))| {
                let mut one = pod(&format!("p{index}"));
                if *on_node { one = bound(one, "n"); }
                one = in_phase(one, ["Pending", "Unknown", "Running"][*phase]);
                if *on_node && *is_ready { one = ready(one, *since); }
                one
            }).collect();
            let all: Vec<&Pod> = pods.iter().collect();
            let going = to_delete(&all, &all, count, at(2000));
            prop_assert_eq!(going.len(), count.min(pods.len()));
            let gone = names(&going);
            let useful = |pod: &Pod| (pod::node_name(pod).is_some(), pod::is_ready(pod));
            for victim in &going {
                for rest in pods.iter().filter(|pod| !gone.contains(pod.metadata.name.as_ref().unwrap())) {
                    prop_assert!(useful(victim) <= useful(rest));
                }
            }
        }
    }
}
