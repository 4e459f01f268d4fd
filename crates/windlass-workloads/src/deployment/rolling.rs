//! The steps of a rolling update.
//!
//! Each step looks at the sizes of all ReplicaSets and does one thing: grow the new one as far as
//! the surge allows, or else shrink the old ones as far as availability allows. Between steps the
//! ReplicaSets catch up, and their status is what the next step sees. Two promises hold at any
//! moment, whatever is late: the sizes never sum to more than `desired + maxSurge` (unless they
//! already did), and pods that are available are not taken away below `desired − maxUnavailable`.
//!
//! Of the old ReplicaSets the pods that are not available go first, oldest set first: they cost
//! nothing, and a broken old version must never stop the new one from arriving.

use super::limits::Limits;

/// A ReplicaSet as far as its size is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Its name.
    pub name: String,
    /// The pods it is asked to have.
    pub replicas: i32,
    /// The available pods it last reported.
    pub available: i32,
}

impl Size {
    /// The available pods it will still have once it has caught up with what it was last asked
    /// for: a report from before it was shrunk counts pods that are already condemned.
    fn lasting(&self) -> i32 {
        self.available.min(self.replicas)
    }
}

/// A change of one ReplicaSet's size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resize {
    /// The ReplicaSet's name.
    pub name: String,
    /// Its new size.
    pub to: i32,
}

/// The next step from the `old` ReplicaSets, oldest first, to the `new` one. Empty when there is
/// nothing to do before somebody else has moved.
pub(crate) fn step(limits: Limits, new: &Size, old: &[Size]) -> Vec<Resize> {
    let current: i32 = old.iter().map(|set| set.replicas).sum();
    let to = new_replicas(limits, new.replicas, current + new.replicas);
    if to != new.replicas {
        return vec![Resize {
            name: new.name.clone(),
            to,
        }];
    }
    shrink_old(limits, new, old)
}

/// The size the new ReplicaSet should have when all ReplicaSets together ask for `total` pods.
pub(crate) fn new_replicas(limits: Limits, replicas: i32, total: i32) -> i32 {
    if replicas >= limits.desired {
        return limits.desired;
    }
    let room = (limits.max_total() - total).max(0);
    replicas + room.min(limits.desired - replicas)
}

/// Takes away old pods: first those that are not available, then available ones while enough stay.
fn shrink_old(limits: Limits, new: &Size, old: &[Size]) -> Vec<Resize> {
    let old_total: i32 = old.iter().map(|set| set.replicas).sum();
    // Pods of the new set that are not there yet may not be counted on.
    let new_missing = new.replicas - new.lasting();
    let room = old_total + new.replicas - limits.min_available() - new_missing;
    if old_total == 0 || room <= 0 {
        return Vec::new();
    }

    let mut sizes: Vec<i32> = old.iter().map(|set| set.replicas).collect();
    let mut unhealthy_room = room;
    for (size, set) in sizes.iter_mut().zip(old) {
        let taken = unhealthy_room.min(*size - set.lasting());
        *size -= taken;
        unhealthy_room -= taken;
    }

    let available: i32 = new.lasting() + old.iter().map(Size::lasting).sum::<i32>();
    let mut spare = (available - limits.min_available()).max(0);
    for size in &mut sizes {
        let taken = spare.min(*size);
        *size -= taken;
        spare -= taken;
    }

    old.iter()
        .zip(sizes)
        .filter(|(set, size)| set.replicas != *size)
        .map(|(set, to)| Resize {
            name: set.name.clone(),
            to,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn limits(desired: i32, surge: i32, unavailable: i32) -> Limits {
        Limits::rolling(
            desired,
            Some(&IntOrString::Int(surge)),
            Some(&IntOrString::Int(unavailable)),
        )
    }

    fn set(name: &str, replicas: i32, available: i32) -> Size {
        Size {
            name: name.to_owned(),
            replicas,
            available,
        }
    }

    fn resized(steps: &[Resize]) -> Vec<(&str, i32)> {
        steps
            .iter()
            .map(|step| (step.name.as_str(), step.to))
            .collect()
    }

    #[test]
    fn surges_first_then_replaces_one_by_one() {
        let limits = limits(3, 1, 0);
        let step1 = step(limits, &set("new", 0, 0), &[set("old", 3, 3)]);
        assert_eq!(resized(&step1), [("new", 1)]);
        assert!(step(limits, &set("new", 1, 0), &[set("old", 3, 3)]).is_empty());
        let step2 = step(limits, &set("new", 1, 1), &[set("old", 3, 3)]);
        assert_eq!(resized(&step2), [("old", 2)]);
        let step3 = step(limits, &set("new", 1, 1), &[set("old", 2, 2)]);
        assert_eq!(resized(&step3), [("new", 2)]);
    }

    #[test]
    fn without_surge_makes_room_first() {
        let limits = limits(10, 0, 2);
        let first = step(limits, &set("new", 0, 0), &[set("old", 10, 10)]);
        assert_eq!(resized(&first), [("old", 8)]);
        let second = step(limits, &set("new", 0, 0), &[set("old", 8, 8)]);
        assert_eq!(resized(&second), [("new", 2)]);
        assert!(step(limits, &set("new", 2, 0), &[set("old", 8, 8)]).is_empty());
    }

    #[test]
    fn a_stale_report_takes_no_pod_twice() {
        // The old set has been asked to shrink to 8 but still reports 10.
        let steps = step(limits(10, 0, 2), &set("new", 2, 1), &[set("old", 8, 10)]);
        assert_eq!(resized(&steps), [("old", 7)]);
    }

    #[test]
    fn broken_old_pods_never_hold_up_the_new_ones() {
        let steps = step(limits(3, 1, 0), &set("new", 1, 0), &[set("old", 3, 0)]);
        assert!(
            steps.is_empty(),
            "nothing is available: nothing may be taken on trust"
        );
        let steps = step(
            limits(10, 2, 2),
            &set("new", 2, 0),
            &[set("a", 4, 0), set("b", 6, 6)],
        );
        assert_eq!(resized(&steps), [("a", 2)]);
    }

    #[test]
    fn a_new_set_that_is_too_large_shrinks() {
        assert_eq!(
            resized(&step(limits(2, 1, 0), &set("new", 5, 5), &[])),
            [("new", 2)]
        );
    }

    /// ReplicaSets and their pods, moved by hand: `pods` exist, `available` of them are.
    #[derive(Clone, Debug)]
    struct World {
        limits: Limits,
        sets: Vec<(Size, i32, i32)>,
    }

    impl World {
        fn deployment(&mut self) -> bool {
            let sizes: Vec<Size> = self.sets.iter().map(|(size, _, _)| size.clone()).collect();
            let Some((new, old)) = sizes.split_last() else {
                return false;
            };
            let steps = step(self.limits, new, old);
            for resize in &steps {
                let (size, _, _) = self
                    .sets
                    .iter_mut()
                    .find(|(size, _, _)| size.name == resize.name)
                    .unwrap();
                size.replicas = resize.to;
            }
            !steps.is_empty()
        }

        /// Set `index` creates or deletes one pod, the ones that are not available first.
        fn replica_set(&mut self, index: usize) -> bool {
            let (size, pods, available) = &mut self.sets[index];
            match (*pods).cmp(&size.replicas) {
                Ordering::Less => *pods += 1,
                Ordering::Greater => {
                    *available = (*available).min(*pods - 1);
                    *pods -= 1;
                }
                Ordering::Equal => return false,
            }
            true
        }

        fn pod_becomes_available(&mut self, index: usize) -> bool {
            let (_, pods, available) = &mut self.sets[index];
            let starting = *available < *pods;
            if starting {
                *available += 1;
            }
            starting
        }

        fn report(&mut self, index: usize) -> bool {
            let (size, _, available) = &mut self.sets[index];
            let changed = size.available != *available;
            size.available = *available;
            changed
        }

        fn asked(&self) -> i32 {
            self.sets.iter().map(|(size, _, _)| size.replicas).sum()
        }
        fn available(&self) -> i32 {
            self.sets.iter().map(|(_, _, available)| available).sum()
        }
    }

    fn world() -> impl Strategy<Value = World> {
        (
            0..12i32,
            0..5i32,
            0..5i32,
            prop::collection::vec(0..6i32, 1..4),
        )
            .prop_map(|(desired, surge, unavailable, mut old)| {
                // Where an update starts: the sets before it hold exactly the wanted pods.
                let mut left = desired;
                for size in &mut old {
                    *size = (*size).min(left);
                    left -= *size;
                }
                if let Some(last) = old.last_mut() {
                    *last += left;
                }
                let mut sets: Vec<_> = old
                    .iter()
                    .enumerate()
                    .map(|(index, size)| (set(&format!("old{index}"), *size, *size), *size, *size))
                    .collect();
                sets.push((set("new", 0, 0), 0, 0));
                World {
                    limits: limits(desired, surge, unavailable),
                    sets,
                }
            })
    }

    proptest! {
        /// Whoever moves first and however late a report is.
        #[test]
        fn never_too_many_and_never_too_few(mut world in world(), moves in prop::collection::vec((0..4u8, 0..4usize), 0..300)) {
            for (what, index) in moves {
                let index = index % world.sets.len();
                match what {
                    0 => world.deployment(),
                    1 => world.replica_set(index),
                    2 => world.pod_becomes_available(index),
                    _ => world.report(index),
                };
                prop_assert!(world.asked() <= world.limits.max_total(), "{world:?}");
                prop_assert!(world.available() >= world.limits.min_available(), "{world:?}");
            }
        }

        #[test]
        fn always_arrives(mut world in world()) {
            let mut moved = true;
            let mut rounds = 0;
            while moved {
                moved = world.deployment();
                for index in 0..world.sets.len() {
                    while world.replica_set(index) { moved = true; }
                    while world.pod_becomes_available(index) { moved = true; }
                    moved |= world.report(index);
                }
                rounds += 1;
                prop_assert!(rounds < 100, "{world:?}");
            }
            let (new, old) = world.sets.split_last().unwrap();
            prop_assert_eq!(new.0.replicas, world.limits.desired);
            prop_assert!(old.iter().all(|(size, pods, _)| size.replicas == 0 && *pods == 0));
        }
    }
}
