//! Scaling a Deployment whose pods are spread over several ReplicaSets.
//!
//! In the middle of a roll-out nobody knows which version will win, so a change of `replicas` is
//! shared out in proportion to the sizes the ReplicaSets have; what rounding leaves over goes to
//! the largest. When only one ReplicaSet has pods, or the new one has them all, it takes everything.

use super::limits::Limits;
use super::rolling::Resize;

/// A ReplicaSet as far as sharing is concerned.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    /// Its name.
    pub name: String,
    /// The pods it is asked to have; at least one.
    pub replicas: i32,
    /// The Deployment's most pods when this size was set (an annotation), if known.
    pub max_replicas: Option<i32>,
    /// Rank by age, 0 is the oldest.
    pub age_rank: usize,
}

/// The sizes of all active ReplicaSets after the Deployment was scaled. Sets whose size stays are
/// included, because their annotations change too. `reported` is the Deployment's number of pods
/// as last reported, for sets that carry no annotation.
pub(crate) fn scale(limits: Limits, reported: i32, sets: &[Share]) -> Vec<Resize> {
    let total: i32 = sets.iter().map(|set| set.replicas).sum();
    let allowed = if limits.desired > 0 {
        limits.max_total()
    } else {
        0
    };
    let to_add = allowed - total;

    // Largest first. Among equals the newer grow first and the older shrink first.
    let mut sets: Vec<&Share> = sets.iter().collect();
    sets.sort_by(|a, b| {
        let by_age = a.age_rank.cmp(&b.age_rank);
        let by_age = if to_add > 0 { by_age.reverse() } else { by_age };
        b.replicas.cmp(&a.replicas).then(by_age)
    });

    let mut added = 0;
    let mut resizes: Vec<Resize> = sets
        .iter()
        .map(|set| {
            let share = share(limits, reported, set, to_add, added);
            added += share;
            Resize {
                name: set.name.clone(),
                to: set.replicas + share,
            }
        })
        .collect();
    // What rounding left over: all of it to the largest, unless that would make it negative.
    let mut left_over = to_add - added;
    for resize in &mut resizes {
        let taken = left_over.max(-resize.to);
        resize.to += taken;
        left_over -= taken;
    }
    resizes
}

/// How many of `to_add` pods (negative: to remove), of which `added` are given out, one set gets.
fn share(limits: Limits, reported: i32, set: &Share, to_add: i32, added: i32) -> i32 {
    let left = to_add - added;
    let fraction = fraction(limits, reported, set);
    if to_add > 0 {
        fraction.min(left).max(0)
    } else {
        fraction.max(left).min(0)
    }
}

/// The growth that would keep the set's part of the whole.
fn fraction(limits: Limits, reported: i32, set: &Share) -> i32 {
    if limits.desired == 0 {
        return -set.replicas;
    }
    let before = set.max_replicas.filter(|max| *max > 0).unwrap_or(reported);
    if before <= 0 {
        return 0;
    }
    rounded(
        i64::from(set.replicas) * i64::from(limits.max_total()),
        i64::from(before),
    ) - set.replicas
}

/// The quotient of two numbers that are not negative, rounded half up.
fn rounded(dividend: i64, divisor: i64) -> i32 {
    i32::try_from((2 * dividend + divisor) / (2 * divisor)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use proptest::prelude::*;

    fn limits(desired: i32, surge: i32) -> Limits {
        Limits::rolling(
            desired,
            Some(&IntOrString::Int(surge)),
            Some(&IntOrString::Int(0)),
        )
    }

    fn share(name: &str, replicas: i32, max_replicas: i32, age_rank: usize) -> Share {
        Share {
            name: name.to_owned(),
            replicas,
            max_replicas: Some(max_replicas),
            age_rank,
        }
    }

    fn sizes(mut resizes: Vec<Resize>) -> Vec<(String, i32)> {
        resizes.sort_by(|a, b| a.name.cmp(&b.name));
        resizes
            .into_iter()
            .map(|resize| (resize.name, resize.to))
            .collect()
    }

    #[test]
    fn shares_growth_by_size() {
        // The example of Kubernetes' documentation: 8 old and 5 new of 10 + 3, scaled to 15 + 3.
        let sets = [share("old", 8, 13, 0), share("new", 5, 13, 1)];
        let resizes = sizes(scale(limits(15, 3), 13, &sets));
        assert_eq!(resizes, [("new".to_owned(), 7), ("old".to_owned(), 11)]);
    }

    #[test]
    fn to_nought_is_nought_for_all() {
        let sets = [share("old", 8, 13, 0), share("new", 5, 13, 1)];
        let resizes = sizes(scale(limits(0, 3), 13, &sets));
        assert_eq!(resizes, [("new".to_owned(), 0), ("old".to_owned(), 0)]);
    }

    #[test]
    fn among_equals_the_newer_gets_what_is_left_over() {
        let sets = [share("old", 5, 10, 0), share("new", 5, 10, 1)];
        let resizes = sizes(scale(limits(11, 0), 10, &sets));
        assert_eq!(resizes, [("new".to_owned(), 6), ("old".to_owned(), 5)]);
    }

    proptest! {
        #[test]
        fn the_sum_is_what_is_allowed_and_nobody_moves_the_wrong_way(
            replicas in prop::collection::vec(1..20i32, 2..6),
            desired in 0..60i32,
            surge in 0..10i32,
        ) {
            let total: i32 = replicas.iter().sum();
            let sets: Vec<Share> = replicas
                .iter()
                .enumerate()
                .map(|(index, size)| share(&format!("s{index}"), *size, total, index))
                .collect();
            let limits = limits(desired, surge);
            let allowed = if desired > 0 { limits.max_total() } else { 0 };
            let resizes = scale(limits, total, &sets);
            prop_assert_eq!(resizes.iter().map(|resize| resize.to).sum::<i32>(), allowed);
            for resize in &resizes {
                let set = sets.iter().find(|set| set.name == resize.name).unwrap();
                prop_assert!(resize.to >= 0);
                if allowed >= total {
                    prop_assert!(resize.to >= set.replicas);
                } else {
                    prop_assert!(resize.to <= set.replicas);
                }
            }
        }
    }
}
