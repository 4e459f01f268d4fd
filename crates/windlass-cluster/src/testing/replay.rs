//! A scenario, replayed once per write of the operators in it, killed just after that write.
//!
//! The operator's program ends between any two of its steps sooner or later. So the scenario runs
//! once undisturbed, which counts the writes; then once for each of them on a fresh cluster, with
//! the operator killed when that write has been applied and before it hears of it, and started
//! again. Every run must end in the same state.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use windlass::Operator;

use super::cluster::TestCluster;
use super::faults::{Failure, Request};
use super::outside::Fate;
use super::state;
use crate::operators::Account;

/// How late a late watch is: a scenario that rests between its steps rests longer.
const LATE: Duration = Duration::from_secs(3);

impl TestCluster {
    /// Replays `scenario` once per write that this cluster's operators make in it; panics on a different end.
    ///
    /// Answers how many replays there were: a scenario without a write proves nothing, and panics too.
    pub async fn crash_after_every_write<F, Fut>(&self, scenario: F) -> usize
    where
        F: Fn(TestCluster) -> Fut,
        Fut: Future<Output = ()>,
    {
        let users: Vec<String> = self
            .operators()
            .iter()
            .map(|operator| Account::of(operator).user())
            .collect();
        assert!(
            !users.is_empty(),
            "start an operator before asking for it to be killed"
        );
        self.replay(&users, scenario).await
    }

    /// The same for the controllers every cluster has, which are killed as one.
    pub async fn crash_controllers_after_every_write<F, Fut>(&self, scenario: F) -> usize
    where
        F: Fn(TestCluster) -> Fut,
        Fut: Future<Output = ()>,
    {
        let user = self.controllers_user().to_owned();
        self.replay(&[user], scenario).await
    }

    /// Replays `scenario` once per write that this cluster's operators make in it, once with every
    /// watch of theirs late, and once in a storm of conflicts; panics on a different end.
    ///
    /// Answers how many runs there were.
    pub async fn ends_alike_however_disturbed<F, Fut>(&self, scenario: F) -> usize
    where
        F: Fn(TestCluster) -> Fut,
        Fut: Future<Output = ()>,
    {
        let undisturbed = self.fresh().await;
        let before = undisturbed.requests().len();
        scenario(undisturbed.clone()).await;
        let expected = undisturbed.rested_state().await;
        let late = self.fresh().await;
        for operator in self.operators() {
            for resource in resources_of(&operator) {
                late.delay_watch(operator.name(), &resource, LATE);
            }
        }
        let stormy = self.fresh().await;
        for operator in self.operators() {
            let storm = Failure::with(409).by(operator.name()).writes();
            stormy.fail(storm.sparing_every(3));
        }
        for (cluster, what) in [
            (late, "with late watches"),
            (stormy, "in a storm of conflicts"),
        ] {
            scenario(cluster.clone()).await;
            let found = cluster.rested_state().await;
            assert!(
                found == expected,
                "{what} it ends differently:\n{}",
                difference(&expected, &found)
            );
        }
        let mut runs = 2 + self.disturb_outside_calls(&scenario).await;
        let writes = undisturbed.requests().split_off(before);
        let operators = self.operators();
        let users = operators
            .iter()
            .map(|operator| Account::of(operator).user());
        let wrote = |user: &String| {
            let made = |request: &Request| {
                request.user == *user && request.verb.writes() && request.code < 300
            };
            writes.iter().any(made)
        };
        let users: Vec<String> = users.filter(wrote).collect();
        if !users.is_empty() {
            runs += self.replay(&users, scenario).await;
        }
        println!("{runs} disturbed runs, all ended alike");
        runs
    }

    /// Replays `scenario` once per call that its operators make to outside systems and that changes
    /// something there, killed just after it; and twice more for each, with the answer lost and with
    /// the call lost. Panics on a different end.
    ///
    /// A call that changes nothing is not worth a replay: an operator killed after it has done what
    /// it had done before it.
    ///
    /// Answers how many replays there were.
    pub async fn disturb_outside_calls<F, Fut>(&self, scenario: F) -> usize
    where
        F: Fn(TestCluster) -> Fut,
        Fut: Future<Output = ()>,
    {
        let undisturbed = self.fresh().await;
        let before = undisturbed.outside_calls().len();
        scenario(undisturbed.clone()).await;
        let expected = undisturbed.rested_state().await;
        let calls = undisturbed.outside_calls().split_off(before);
        drop(undisturbed);
        let mut replays = 0;
        for (index, call) in calls.iter().enumerate().filter(|(_, call)| call.changes) {
            for fate in [Fate::CallerKilled, Fate::AnswerLost, Fate::CallLost] {
                let cluster = self.fresh().await;
                cluster.faults().plan(index + 1, fate);
                scenario(cluster.clone()).await;
                let found = cluster.rested_state().await;
                let nth = format!("call {} of {} ({})", index + 1, calls.len(), call.what);
                assert!(
                    !cluster.faults().plan_is_pending(),
                    "there was no {nth} in a replay of the scenario: it is not deterministic",
                );
                assert!(
                    found == expected,
                    "{nth} {fate}, {} ends differently:\n{}",
                    call.operator,
                    difference(&expected, &found)
                );
                replays += 1;
            }
        }
        if replays > 0 {
            println!(
                "{replays} replays, each with another outside call disturbed, all ended alike"
            );
        }
        replays
    }

    /// Replays `scenario` once per write of each of these users.
    async fn replay<F, Fut>(&self, users: &[String], scenario: F) -> usize
    where
        F: Fn(TestCluster) -> Fut,
        Fut: Future<Output = ()>,
    {
        let undisturbed = self.fresh().await;
        let before = undisturbed.requests().len();
        scenario(undisturbed.clone()).await;
        let expected = undisturbed.state().await;
        let all = undisturbed.requests();
        let mut replays = 0;
        for user in users {
            let writes: Vec<_> = all[before..]
                .iter()
                .filter(|request| {
                    request.user == *user && request.verb.writes() && request.code < 300
                })
                .collect();
            for (index, write) in writes.iter().enumerate() {
                let nth = index + 1;
                let cluster = self.fresh().await;
                cluster.crash_after(user, nth);
                scenario(cluster.clone()).await;
                let found = cluster.state().await;
                assert!(
                    !cluster.faults().crash_is_pending(),
                    "{user} made fewer than {nth} writes in a replay of the scenario: it is not deterministic",
                );
                assert!(
                    found == expected,
                    "killed after write {nth} of {} ({write}), {user} ends differently:\n{}",
                    writes.len(),
                    difference(&expected, &found)
                );
                replays += 1;
            }
        }
        assert!(replays > 0, "nothing was written in this scenario");
        println!("{replays} replays, each killed after another write, all ended alike");
        replays
    }

    /// A cluster of the same seed with the same operators, in which nothing has happened yet.
    pub(super) async fn fresh(&self) -> Self {
        self.fresh_with(self.seed()).await
    }

    /// The same with another seed.
    pub(super) async fn fresh_with(&self, seed: u64) -> Self {
        let cluster = Self::new(seed).await;
        let fleeting = self.fleeting();
        cluster.do_not_compare(&fleeting.iter().map(String::as_str).collect::<Vec<_>>());
        for origin in self.origins() {
            cluster.start_origin(origin, None).await;
        }
        cluster
    }

    fn crash_after(&self, user: &str, nth: usize) {
        if let Some(crash) = self.crash_of(user) {
            self.faults().crash_after(user, nth, crash);
        }
    }

    /// The state when everything that is late has come.
    async fn rested_state(&self) -> Vec<String> {
        self.advance(LATE * 20).await;
        self.state().await
    }

    pub(super) async fn state(&self) -> Vec<String> {
        self.settle().await;
        state::of(&self.client(), &self.fleeting())
            .await
            .unwrap_or_else(|error| panic!("cannot read the cluster's state: {error}"))
    }
}

/// What an operator watches, as requests are noted.
fn resources_of(operator: &Operator) -> BTreeSet<String> {
    let description = operator.description();
    let parts = description.controllers.iter().chain(&description.serving);
    let watches = parts.flat_map(|part| &part.watches);
    watches.map(|watch| watch.resource.clone()).collect()
}

/// The lines that are not in both, each as often as it is missing: pods look alike here.
pub(super) fn difference(expected: &[String], found: &[String]) -> String {
    let mut surplus: Vec<&String> = found.iter().collect();
    let mut lines = Vec::new();
    for line in expected {
        match surplus.iter().position(|other| *other == line) {
            Some(same) => {
                surplus.swap_remove(same);
            }
            None => lines.push(format!("- {line}")),
        }
    }
    lines.extend(surplus.into_iter().map(|line| format!("+ {line}")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_lines_that_look_alike() {
        let lines = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (one, two) = (lines(&["pod", "set"]), lines(&["pod", "pod"]));
        assert_eq!(difference(&one, &two), "- set\n+ pod");
        assert_eq!(difference(&one, &one), "");
    }
}
