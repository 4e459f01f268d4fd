use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn core() -> Core {
    awake(Activity::default())
}

fn awake(activity: Activity) -> Core {
    let mut core = Core::new("test", activity, Rate::default());
    core.set_dormant(false);
    core
}

fn key(name: &str) -> Key {
    Key::cluster(name)
}

fn start() -> Instant {
    Instant::now()
}

fn taken(core: &mut Core, now: Instant) -> Option<String> {
    core.next(now).map(|taken| taken.key.to_string())
}

fn add(core: &mut Core, name: &str, priority: Priority) {
    core.add(key(name), priority, Cause::Timer, start());
}

#[test]
fn changes_go_before_the_first_list_and_each_in_order() {
    let (mut core, now) = (core(), start());
    add(&mut core, "a", Priority::Low);
    add(&mut core, "b", Priority::Low);
    add(&mut core, "c", Priority::High);
    add(&mut core, "b", Priority::High);
    add(&mut core, "c", Priority::Low);
    let order: Vec<String> = std::iter::from_fn(|| taken(&mut core, now)).collect();
    assert_eq!(order, ["c", "b", "a"]);
}

#[test]
fn a_key_added_while_it_runs_runs_once_more() {
    let (mut core, now) = (core(), start());
    add(&mut core, "a", Priority::High);
    assert_eq!(taken(&mut core, now).as_deref(), Some("a"));
    add(&mut core, "a", Priority::High);
    add(&mut core, "a", Priority::High);
    assert_eq!(taken(&mut core, now), None);
    core.finish(&key("a"), Outcome::Settled, now);
    assert_eq!(taken(&mut core, now).as_deref(), Some("a"));
    core.finish(&key("a"), Outcome::Settled, now);
    assert_eq!(taken(&mut core, now), None);
    assert!(core.items.is_empty());
}

#[test]
fn failures_back_off_from_5_ms_to_1000_s_and_success_resets() {
    let (mut core, mut now) = (core(), start());
    add(&mut core, "a", Priority::High);
    let mut delays = Vec::new();
    for _ in 0..20 {
        taken(&mut core, now).unwrap();
        core.finish(&key("a"), Outcome::Failed, now);
        let at = core.next_wake().unwrap();
        delays.push(at - now);
        assert_eq!(taken(&mut core, at - Duration::from_nanos(1)), None);
        now = at;
    }
    assert_eq!(delays[0], Duration::from_millis(5));
    assert_eq!(delays[3], Duration::from_millis(40));
    assert_eq!(delays[19], Duration::from_secs(1000));
    taken(&mut core, now).unwrap();
    core.finish(&key("a"), Outcome::Settled, now);
    add(&mut core, "a", Priority::High);
    taken(&mut core, now).unwrap();
    core.finish(&key("a"), Outcome::Failed, now);
    assert_eq!(core.next_wake().unwrap() - now, Duration::from_millis(5));
}

#[test]
fn delay_beyond_the_clock_neither_panics_nor_holds_its_key() {
    let (mut core, now) = (core(), start());
    add(&mut core, "a", Priority::High);
    assert_eq!(taken(&mut core, now).as_deref(), Some("a"));
    core.finish(&key("a"), Outcome::After(Duration::MAX), now);
    assert_eq!(taken(&mut core, now), None);
    add(&mut core, "a", Priority::High);
    assert_eq!(taken(&mut core, now).as_deref(), Some("a"));
}

#[test]
fn a_change_does_not_wait_for_the_backoff() {
    let (mut core, now) = (core(), start());
    add(&mut core, "a", Priority::High);
    taken(&mut core, now).unwrap();
    core.finish(&key("a"), Outcome::Failed, now);
    add(&mut core, "a", Priority::High);
    assert_eq!(taken(&mut core, now).as_deref(), Some("a"));
    // The reconcile decides anew: its old retry is gone.
    core.finish(&key("a"), Outcome::Settled, now);
    assert_eq!(core.next_wake(), None);
}

#[test]
fn only_work_that_a_settled_cluster_would_do_is_activity() {
    let activity = Activity::default();
    let mut core = awake(activity.clone());
    let now = start();
    add(&mut core, "a", Priority::High);
    assert!(activity.is_busy());
    taken(&mut core, now).unwrap();
    assert!(activity.is_busy());
    core.finish(&key("a"), Outcome::After(Duration::from_mins(1)), now);
    assert!(
        activity.is_idle(),
        "a reconciler's own timer is not pending work"
    );
    let now = now + Duration::from_mins(1);
    taken(&mut core, now).unwrap();
    core.finish(&key("a"), Outcome::Failed, now);
    assert_eq!(activity.next_due(), core.next_wake());
    drop(core);
    assert!(activity.is_idle());
}

#[derive(Clone, Debug)]
enum Op {
    Add(u8, bool),
    Take,
    Finish(u8, u8),
    Pass(u16),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0_u8..5, any::<bool>()).prop_map(|(key, high)| Op::Add(key, high)),
        Just(Op::Take),
        (0_u8..5, 0_u8..3).prop_map(|(key, outcome)| Op::Finish(key, outcome)),
        (0_u16..2000).prop_map(Op::Pass),
    ]
}

proptest! {
    /// Nothing is lost, nothing runs twice at once, and activity says exactly what is pending.
    #[test]
    fn every_add_is_followed_by_a_run(ops in prop::collection::vec(op(), 0..120)) {
        let activity = Activity::default();
        let mut core = awake(activity.clone());
        let mut now = start();
        let mut running: BTreeSet<Key> = BTreeSet::new();
        // Keys that were added, or woken, after they last started.
        let mut owed: BTreeSet<Key> = BTreeSet::new();
        for op in ops {
            match op {
                Op::Add(name, high) => {
                    let key = key(&name.to_string());
                    let priority = if high { Priority::High } else { Priority::Low };
                    core.add(key.clone(), priority, Cause::Timer, now);
                    owed.insert(key);
                }
                Op::Take => {
                    if let Some(Taken { key, .. }) = core.next(now) {
                        owed.remove(&key);
                        prop_assert!(running.insert(key), "one key runs twice at once");
                    } else {
                        prop_assert!(owed.iter().all(|key| running.contains(key)));
                    }
                }
                Op::Finish(name, outcome) => {
                    let key = key(&name.to_string());
                    if running.remove(&key) {
                        let outcome = match outcome {
                            0 => Outcome::Settled,
                            1 => Outcome::After(Duration::from_secs(1)),
                            _ => Outcome::Failed,
                        };
                        core.finish(&key, outcome, now);
                        if outcome != Outcome::Settled {
                            prop_assert!(core.next_wake().is_some());
                        }
                    }
                }
                Op::Pass(millis) => now += Duration::from_millis(millis.into()),
            }
            prop_assert_eq!(core.ready.len() + running.len() > 0, activity.is_busy());
        }
        // Left alone, the queue runs dry and forgets everything.
        for key in std::mem::take(&mut running) {
            core.finish(&key, Outcome::Settled, now);
        }
        loop {
            let taken = core.next(now);
            match (taken, core.next_wake()) {
                (Some(Taken { key, .. }), _) => {
                    owed.remove(&key);
                    core.finish(&key, Outcome::Settled, now);
                }
                (None, Some(at)) => now = at,
                (None, None) => break,
            }
        }
        prop_assert!(owed.is_empty() && core.items.is_empty() && activity.is_idle());
    }
}

/// One thing that happens to a queue, by numbers.
fn drain(core: &mut Core, now: Instant) -> Vec<String> {
    std::iter::from_fn(|| taken(core, now)).collect()
}

proptest! {
    /// Within a priority, who came first is first, whatever else is in the queue.
    #[test]
    fn order_is_kept_within_a_priority(adds in prop::collection::vec((0_u8..40, any::<bool>()), 0..60)) {
        let (mut core, now) = (core(), start());
        let mut lines: [Vec<String>; 2] = Default::default();
        for (name, high) in adds {
            let name = name.to_string();
            let priority = if high { Priority::High } else { Priority::Low };
            add(&mut core, &name, priority);
            let [first, second] = &mut lines;
            if first.contains(&name) || !high && second.contains(&name) {
                continue;
            }
            second.retain(|other| *other != name);
            if high { first.push(name) } else { second.push(name) }
        }
        let order = drain(&mut core, now);
        for line in &lines {
            let kept: Vec<&String> = order.iter().filter(|name| line.contains(name)).collect();
            prop_assert_eq!(kept, line.iter().collect::<Vec<_>>());
        }
        prop_assert_eq!(order.len(), lines[0].len() + lines[1].len(), "no key lost, none twice");
    }

    /// Each key has its own backoff: it doubles with its failures, and one success forgets them.
    #[test]
    fn backoff_is_per_key_and_reset_by_success(runs in prop::collection::vec((0_u8..3, any::<bool>()), 1..60)) {
        let (mut core, mut now) = (core(), start() + Duration::from_hours(1));
        let mut failures = [0_u32; 3];
        for (name, fails) in runs {
            // Far enough apart that the overall limit plays no part.
            now += Duration::from_secs(2000);
            let key = key(&name.to_string());
            while let Some(other) = core.next(now) {
                core.finish(&other.key, Outcome::Settled, now);
                failures[usize::from(other.key.name().parse::<u8>().unwrap())] = 0;
            }
            core.add(key.clone(), Priority::High, Cause::Timer, now);
            prop_assert_eq!(core.next(now).map(|taken| taken.key), Some(key.clone()));
            let count = &mut failures[usize::from(name)];
            if fails {
                core.finish(&key, Outcome::Failed, now);
                let delay = core.next_wake().unwrap() - now;
                prop_assert_eq!(delay, backoff(*count));
                *count += 1;
            } else {
                core.finish(&key, Outcome::Settled, now);
                *count = 0;
            }
        }
    }

    /// What was put off is never early, and not late either when somebody looks.
    #[test]
    fn a_delayed_key_is_never_early(delays in prop::collection::vec(1_u64..5000, 1..20)) {
        let (mut core, now) = (core(), start());
        let mut due: BTreeMap<String, Instant> = BTreeMap::new();
        for (number, delay) in delays.into_iter().enumerate() {
            let name = number.to_string();
            add(&mut core, &name, Priority::High);
            taken(&mut core, now).unwrap();
            let delay = Duration::from_millis(delay);
            core.finish(&key(&name), Outcome::After(delay), now);
            due.insert(name, now + delay);
        }
        while let Some(at) = core.next_wake() {
            prop_assert_eq!(taken(&mut core, at - Duration::from_nanos(1)), None);
            for name in drain(&mut core, at) {
                prop_assert_eq!(due.remove(&name), Some(at));
                core.finish(&key(&name), Outcome::Settled, at);
            }
        }
        prop_assert!(due.is_empty());
    }

    /// However fast changes come, whoever waits has a turn after a bounded number of others.
    #[test]
    fn a_flood_starves_nobody(waiting in 1_usize..20, flood in 1_usize..20) {
        let (mut core, now) = (core(), start());
        for number in 0..waiting {
            add(&mut core, &format!("old-{number}"), Priority::Low);
        }
        for number in 0..flood {
            add(&mut core, &format!("flood-{number}"), Priority::High);
        }
        let mut turns = 0;
        let mut left = waiting;
        while left > 0 {
            turns += 1;
            prop_assert!(turns <= waiting * (FAIR as usize + 1), "{left} still wait after {turns}");
            let name = taken(&mut core, now).unwrap();
            core.finish(&key(&name), Outcome::Settled, now);
            if name.starts_with("old") {
                left -= 1;
            } else {
                // It changes again at once.
                add(&mut core, &name, Priority::High);
            }
        }
    }

    /// Many that fail at once come back no faster than the overall limit.
    #[test]
    fn retries_keep_to_the_overall_rate(failing in 101_usize..300) {
        let (mut core, now) = (core(), start() + Duration::from_hours(1));
        for number in 0..failing {
            add(&mut core, &number.to_string(), Priority::High);
        }
        while let Some(taken) = core.next(now) {
            core.finish(&taken.key, Outcome::Failed, now);
        }
        let burst = drain(&mut core, now + Duration::from_millis(50)).len();
        prop_assert_eq!(burst, 100);
        let second = drain(&mut core, now + Duration::from_millis(1050)).len();
        prop_assert!(second <= 10, "{second} in a second");
    }
}
