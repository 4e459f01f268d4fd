//! A scenario, replayed once per write of the operators in it, killed just after that write.
//!
//! The operator's program ends between any two of its steps sooner or later. So the scenario runs
//! once undisturbed, which counts the writes; then once for each of them on a fresh cluster, with
//! the operator killed when that write has been applied and before it hears of it, and started
//! again. Every run must end in the same state.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::Notify;
use windlass::Operator;

use super::cluster::TestCluster;
use super::state;
use crate::operators;

impl TestCluster {
    /// Replays `scenario` once per write that this cluster's operators make in it; panics on a different end.
    ///
    /// Answers how many replays there were: a scenario without a write proves nothing, and panics too.
    pub async fn crash_after_every_write<F, Fut>(&self, scenario: F) -> usize
    where
        F: Fn(TestCluster) -> Fut,
        Fut: Future<Output = ()>,
    {
        let operators: Vec<Arc<Operator>> = self
            .operators()
            .into_iter()
            .map(|(operator, _)| operator)
            .collect();
        assert!(
            !operators.is_empty(),
            "start an operator before asking for it to be killed"
        );
        let undisturbed = self.fresh(&operators).await;
        let before = undisturbed.requests().len();
        scenario(undisturbed.clone()).await;
        let expected = undisturbed.state().await;
        let mut replays = 0;
        for operator in &operators {
            let user = operators::user_of(operator);
            let all = undisturbed.requests();
            let writes: Vec<_> = all[before..]
                .iter()
                .filter(|request| {
                    request.user == user && request.verb.writes() && request.code < 300
                })
                .collect();
            for (index, write) in writes.iter().enumerate() {
                let nth = index + 1;
                let cluster = self.fresh(&operators).await;
                cluster.crash_after(operator, nth);
                scenario(cluster.clone()).await;
                assert!(
                    !cluster.faults().crash_is_pending(),
                    "{} made fewer than {nth} writes in a replay of the scenario: it is not deterministic",
                    operator.name()
                );
                let found = cluster.state().await;
                assert!(
                    found == expected,
                    "killed after write {nth} of {} ({} {} {}), {} ends differently:\n{}",
                    writes.len(),
                    write.verb.as_str(),
                    write.resource,
                    write.name,
                    operator.name(),
                    difference(&expected, &found)
                );
                replays += 1;
            }
        }
        assert!(replays > 0, "the operators wrote nothing in this scenario");
        println!("{replays} replays, each killed after another write, all ended alike");
        replays
    }

    async fn fresh(&self, operators: &[Arc<Operator>]) -> Self {
        let cluster = Self::new(self.seed()).await;
        for operator in operators {
            cluster.start_shared(operator.clone()).await;
        }
        cluster
    }

    fn crash_after(&self, operator: &Operator, nth: usize) {
        let crash: Option<Arc<Notify>> = self
            .operators()
            .into_iter()
            .find(|(started, _)| started.name() == operator.name())
            .map(|(_, crash)| crash);
        if let Some(crash) = crash {
            self.faults()
                .crash_after(&operators::user_of(operator), nth, crash);
        }
    }

    async fn state(&self) -> Vec<String> {
        self.settle().await;
        state::of(&self.client())
            .await
            .unwrap_or_else(|error| panic!("cannot read the cluster's state: {error}"))
    }
}

fn difference(expected: &[String], found: &[String]) -> String {
    let only = |these: &[String], those: &[String], mark: &str| {
        these
            .iter()
            .filter(|line| !those.contains(line))
            .map(|line| format!("{mark} {line}\n"))
            .collect::<String>()
    };
    format!(
        "{}{}",
        only(expected, found, "-"),
        only(found, expected, "+")
    )
}
