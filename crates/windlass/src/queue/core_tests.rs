use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn core() -> Core {
    Core::new("test", Activity::default(), Rate::default())
}

fn key(name: &str) -> Key {
    Key::cluster(name)
}

fn start() -> Instant {
    Instant::now()
}

fn taken(core: &mut Core, now: Instant) -> Option<String> {
    core.next(now).map(|(key, _)| key.to_string())
}

fn add(core: &mut Core, name: &str, priority: Priority) {
    core.add(key(name), priority, Cause::Timer);
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
    let mut core = Core::new("test", activity.clone(), Rate::default());
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
        let mut core = Core::new("test", activity.clone(), Rate::default());
        let mut now = start();
        let mut running: BTreeSet<Key> = BTreeSet::new();
        // Keys that were added, or woken, after they last started.
        let mut owed: BTreeSet<Key> = BTreeSet::new();
        for op in ops {
            match op {
                Op::Add(name, high) => {
                    let key = key(&name.to_string());
                    let priority = if high { Priority::High } else { Priority::Low };
                    core.add(key.clone(), priority, Cause::Timer);
                    owed.insert(key);
                }
                Op::Take => {
                    if let Some((key, _)) = core.next(now) {
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
                (Some((key, _)), _) => {
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
