//! [`Repetitions`]: a loop that writes the same thing again and again.
//!
//! A reconciler that fights with somebody over a field, or asks for what the server does not keep,
//! never settles: each of its writes wakes it to write again. Such a loop is cheap to see here,
//! where every answer to a write passes: the same object left the same way so often in a row.

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use crate::{Key, cache::Writer, client::managed, kind::KindInfo};

/// So many equal writes in a row, within this time, are a loop.
const ENOUGH: u32 = 5;
const WITHIN: Duration = Duration::from_mins(10);
/// How many objects are remembered at the most; beyond that those written longest ago are let go.
const REMEMBERED: usize = 10_000;
/// What the server changes with every write.
const PASSING: [&str; 5] = [
    "resourceVersion",
    "generation",
    "managedFields",
    "uid",
    "creationTimestamp",
];

/// Who wrote what how often.
#[derive(Default)]
pub(crate) struct Repetitions(Mutex<Runs>);

/// Two generations: when the young one is full it becomes the old one, whose entries are let go
/// together. So a write costs the same however many objects are written.
#[derive(Default)]
struct Runs {
    young: BTreeMap<Target, Run>,
    old: BTreeMap<Target, Run>,
}

impl Runs {
    fn run(&mut self, target: Target, new: Run) -> &mut Run {
        if self.young.len() >= REMEMBERED / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        let before = self.old.remove(&target);
        self.young.entry(target).or_insert(before.unwrap_or(new))
    }
}

/// Who wrote what, as a number: two that have the same would count as one, which costs a needless
/// warning at the most.
type Target = u64;

fn target(writer: &Writer, kind: &KindInfo, key: &Key) -> Target {
    let mut hasher = managed::hasher();
    (&writer.controller, &writer.key, kind, key).hash(&mut hasher);
    hasher.finish()
}

struct Run {
    result: u64,
    times: u32,
    first: Instant,
}

impl Repetitions {
    /// Notes a write; answers how often it has been made when that is a loop worth telling of.
    pub(crate) fn note(
        &self,
        writer: &Writer,
        kind: &KindInfo,
        key: &Key,
        answer: &Value,
    ) -> Option<u32> {
        let result = result_of(answer);
        let now = Instant::now();
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let target = target(writer, kind, key);
        let new = Run {
            result,
            times: 0,
            first: now,
        };
        let run = runs.run(target, new);
        if run.result != result || now.duration_since(run.first) >= WITHIN {
            *run = Run {
                result,
                times: 0,
                first: now,
            };
        }
        run.times += 1;
        // Told at five, ten, twenty, forty, …: often enough.
        let told = run.times.is_multiple_of(ENOUGH) && (run.times / ENOUGH).is_power_of_two();
        told.then_some(run.times)
    }
}

/// A number for what a write left, whatever the server counts besides.
fn result_of(answer: &Value) -> u64 {
    let fields = answer.as_object().into_iter().flatten();
    fields.fold(0_u64, |sum, (name, value)| {
        let number = if name == "metadata" {
            let metadata = value.as_object().into_iter().flatten();
            metadata
                .filter(|(name, _)| !PASSING.contains(&name.as_str()))
                .fold(0_u64, |sum, (name, value)| mix(sum, name, value))
        } else {
            managed::fingerprint(value)
        };
        sum.wrapping_mul(31).wrapping_add(number)
    })
}

fn mix(sum: u64, name: &str, value: &Value) -> u64 {
    let name = managed::fingerprint(&Value::from(name));
    sum.wrapping_add(name ^ managed::fingerprint(value).rotate_left(17))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn remembered_writes_are_bounded_and_recent_ones_stay() {
        let mut runs = Runs::default();
        let target = |nth: usize| -> Target {
            let key = Key::namespaced("n", format!("object-{nth}"));
            let writer = Writer {
                controller: "c".into(),
                key: key.clone(),
            };
            super::target(&writer, &KindInfo::of::<ConfigMap>(), &key)
        };
        let new = || Run {
            result: 1,
            times: 0,
            first: Instant::now(),
        };
        for nth in 0..10 * REMEMBERED {
            runs.run(target(nth), new()).times += 1;
            runs.run(target(0), new()).times += 1;
            assert!(runs.young.len() + runs.old.len() <= REMEMBERED);
        }
        assert_eq!(
            runs.run(target(0), new()).times as usize,
            10 * REMEMBERED + 1
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_is_told_of_and_progress_is_not() {
        let repetitions = Repetitions::default();
        let (kind, key) = (KindInfo::of::<ConfigMap>(), Key::namespaced("n", "a"));
        let writer = Writer {
            controller: "c".into(),
            key: key.clone(),
        };
        let answer = |version: u32, value: &str| {
            json!({
                "metadata": {"name": "a", "resourceVersion": version.to_string()},
                "data": {"k": value},
            })
        };
        let note = |version: u32, value: &str| {
            repetitions.note(&writer, &kind, &key, &answer(version, value))
        };
        let told: Vec<u32> = (0..20)
            .filter_map(|version| note(version, "same"))
            .collect();
        assert_eq!(told, [5, 10, 20]);
        for version in 0..20 {
            let value = version.to_string();
            assert_eq!(note(version, &value), None);
        }
        for version in 0..20 {
            tokio::time::sleep(Duration::from_mins(3)).await;
            assert_eq!(note(version, "slow"), None);
        }
    }
}
