//! The explorer: a scenario, run again and again with a fault at each point where one can make a
//! difference, and compared with the run that nothing disturbed.
//!
//! First the scenario runs undisturbed, on clusters of two seeds: what differs between those is
//! chance, and nothing can be judged by it. The trace of the first run says where faults can be:
//! after each write that changed something, at each write, at each event after which the operator
//! wrote, at each call to an outside system that changes something there. Every such plan is a run of its own, on a cluster that begins like the first; then come
//! plans of two faults, the second a kill while the operator recovers from the first, until the
//! budget is used up.
//!
//! A plan that ends badly is run a second time, and once with a pause in place of each fault: when
//! that ends badly, too, nothing is reported. A finding names the faults it takes, and is printed as a
//! test that replays it. Calls to systems outside of the cluster are disturbed with the rest, when
//! their simulation asks [`Outside`](super::Outside) about them.

mod judge;
mod points;
mod report;
mod script;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::future::{Future, IntoFuture};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures::FutureExt as _;

use super::cluster::TestCluster;
use super::minutes;
use crate::operators::Account;
pub use judge::Wrong;
use judge::{Ended, Ending};
use points::Entry;
pub use report::{Finding, Report};
pub(crate) use script::{Script, Step};
use windlass_explore::plan::{Fault, Plan};
use windlass_explore::shrink::smallest;

/// How many plans are run by default.
const PLANS: usize = 1_000;
/// After so many findings of one kind the others are only counted.
const FINDINGS: usize = 5;

impl TestCluster {
    /// Explores `scenario` with the operators that were started: see [`Exploration`].
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use windlass::{Controller, Operator};
    /// # use windlass_cluster::TestCluster;
    /// # fn operator() -> Operator {
    /// #     let map = |secret: &Secret| {
    /// #         let mut map = ConfigMap::default();
    /// #         map.metadata.name.clone_from(&secret.metadata.name);
    /// #         map
    /// #     };
    /// #     Operator::new("maps").controller(Controller::of_existing::<Secret>().dependent(map))
    /// # }
    /// # windlass_cluster::private::run(|cluster| async move {
    /// cluster.start(operator()).await;
    /// let report = cluster
    ///     .explore(|cluster| async move {
    ///         let mut secret = Secret::default();
    ///         secret.metadata.name = Some("one".to_owned());
    ///         cluster.create(secret).await;
    ///         cluster.settle().await;
    ///     })
    ///     .await;
    /// report.expect_sound();
    /// # });
    /// ```
    pub fn explore<F, Fut>(&self, scenario: F) -> Exploration<'_, F>
    where
        F: Fn(TestCluster) -> Fut,
        Fut: Future<Output = ()>,
    {
        Exploration {
            cluster: self,
            scenario,
            plans: PLANS,
            replay: None,
        }
    }
}

/// A scenario to be explored; awaited, it is.
#[must_use = "nothing is explored before it is awaited"]
pub struct Exploration<'a, F> {
    cluster: &'a TestCluster,
    scenario: F,
    plans: usize,
    replay: Option<String>,
}

impl<F> Exploration<'_, F> {
    /// How many plans are run at most; 1,000 by default.
    pub fn plans(mut self, plans: usize) -> Self {
        self.plans = plans;
        self
    }

    /// Runs one plan only, as a report names it.
    pub fn replay(mut self, plan: &str) -> Self {
        self.replay = Some(plan.to_owned());
        self
    }
}

impl<'a, F, Fut> IntoFuture for Exploration<'a, F>
where
    F: Fn(TestCluster) -> Fut + 'a,
    Fut: Future<Output = ()> + 'a,
{
    type Output = Report;
    type IntoFuture = Pin<Box<dyn Future<Output = Report> + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// One run, and how it went.
struct Run {
    ended: Ended,
    trace: Vec<Entry>,
    /// Whether every fault of its plan had its turn.
    complete: bool,
}

impl<F, Fut> Exploration<'_, F>
where
    F: Fn(TestCluster) -> Fut,
    Fut: Future<Output = ()>,
{
    async fn run(self) -> Report {
        let seed = self.cluster.seed();
        let reference = self.play(seed, &Plan::default()).await;
        let mut report = Report::of(&reference.trace);
        let expected = match reference.ended {
            Ok(expected) => expected,
            Err(panic) => return report.unsteady(format!("it panics undisturbed: {panic}")),
        };
        let other = self.play(seed.wrapping_add(1), &Plan::default()).await;
        if let Some(wrong) = judge::compare(&expected, &other.ended) {
            return report.unsteady(format!("two undisturbed runs end differently: {wrong}"));
        }
        let mut plans = match &self.replay {
            Some(text) => match text.parse() {
                Ok(plan) => VecDeque::from([plan]),
                Err(error) => return report.unsteady(error),
            },
            None => points::single(&reference.trace).into(),
        };
        let mut known: HashSet<Plan> = plans.iter().cloned().collect();
        while let Some(plan) = plans.pop_front() {
            if report.runs == self.plans {
                report.left_out = plans.len() + 1;
                break;
            }
            report.runs += 1;
            let run = self.play(seed, &plan).await;
            if !run.complete {
                report.not_reached += 1;
            }
            match judge::compare(&expected, &run.ended) {
                Some(wrong) => {
                    let repeats = self.shows(seed, &plan, &expected, &wrong).await;
                    let control = self.play(seed, &points::control(&plan)).await;
                    if judge::compare(&expected, &control.ended).is_some() {
                        // A pause does the same: nothing follows from the fault.
                        report.unclear += 1;
                        continue;
                    }
                    let plan = if repeats && plan.0.len() > 1 {
                        let shows = async |faults: &[Fault]| {
                            let candidate = Plan(faults.to_vec());
                            !faults.is_empty()
                                && self.shows(seed, &candidate, &expected, &wrong).await
                        };
                        Plan(smallest(plan.0, shows).await)
                    } else {
                        plan
                    };
                    report.add(Finding::new(&plan, wrong, repeats), FINDINGS);
                }
                // What two faults do that each alone does not.
                None if self.replay.is_none() && plan.0.len() == 1 => {
                    let seconds = points::second(&plan, &run.trace);
                    plans.extend(
                        seconds
                            .into_iter()
                            .filter(|plan| known.insert(plan.clone())),
                    );
                }
                None => {}
            }
        }
        report
    }

    /// Whether the scenario ends badly in this way under a plan.
    async fn shows(&self, seed: u64, plan: &Plan, expected: &Ending, wrong: &Wrong) -> bool {
        let run = self.play(seed, plan).await;
        judge::compare(expected, &run.ended).as_ref() == Some(wrong)
    }

    /// Plays the scenario on a cluster of its own.
    async fn play(&self, seed: u64, plan: &Plan) -> Run {
        let cluster = self.cluster.fresh_with(seed).await;
        let operators = self.cluster.operators();
        let users: BTreeMap<String, String> = operators
            .iter()
            .map(|operator| (Account::of(operator).user(), operator.name().to_owned()))
            .collect();
        let script = Arc::new(Script::new(users, cluster.activity(), plan));
        cluster.faults().follow(script.clone());
        let played = async {
            (self.scenario)(cluster.clone()).await;
            ending(&cluster, &script).await
        };
        let ended = AssertUnwindSafe(played).catch_unwind().await;
        Run {
            ended: ended.map_err(|panic| sentence(&*panic)),
            trace: script.trace(),
            complete: script.not_reached().is_empty(),
        }
    }
}

/// What a run has come to, once nothing is left to do.
async fn ending(cluster: &TestCluster, script: &Script) -> Ending {
    cluster.leap(minutes(1)).await;
    let writes = |trace: &[Entry]| {
        let mut writes: BTreeMap<String, usize> = BTreeMap::new();
        for entry in trace {
            if let Entry::Applied {
                at, changed: true, ..
            } = entry
            {
                *writes.entry(at.operator.clone()).or_default() += 1;
            }
        }
        writes
    };
    let before = script.trace().len();
    cluster.leap(minutes(10)).await;
    let writes_at_rest = writes(&script.trace()[before..]);
    let objects = cluster.faults().precious();
    let operators = cluster.operators();
    let panics = operators.iter().map(|operator| {
        let panics = cluster.metric(
            operator.name(),
            "controller_runtime_reconcile_panics_total",
            "",
        );
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is a count"
        )]
        (operator.name().to_owned(), panics as u64)
    });
    Ending {
        panics: panics.collect(),
        writes_at_rest,
        deleted: objects.deleted,
        kept: objects.kept,
        state: cluster.state().await,
    }
}

/// Objects of precious kinds: which operators deleted, and which are there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Precious {
    pub(crate) deleted: BTreeSet<String>,
    pub(crate) kept: BTreeSet<String>,
}

/// What a panic said.
fn sentence(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
