//! An exploration: a scenario undisturbed, then with each fault that can make a difference.

mod confirm;
mod fields;
mod findings;
mod reference;

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use crate::judge::Wrong;
use crate::plan::Plan;
use crate::scenario::Scenario;
use crate::subject::Subject;
use crate::trace::Record;
use crate::triggers::{self, Facts};
use crate::world::{Base, Expected, Run, Take, Unusable};

pub use confirm::part;
pub use fields::varied;
pub use findings::{Finding, Kept, Report};

/// After so many findings of one kind the others are only counted.
const OF_A_KIND: usize = 4;

/// How much is explored.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many plans are run at most.
    pub plans: usize,
    /// For how long new plans are begun.
    pub time: Option<Duration>,
    /// How many runs there are at a time.
    pub jobs: usize,
    /// Whether plans of two faults follow those of one.
    pub pairs: bool,
    /// How many findings are enough.
    pub findings: usize,
    /// Whether the fields of what is applied first are changed, too.
    pub fields: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            plans: 1_000,
            time: None,
            jobs: 1,
            pairs: true,
            findings: usize::MAX,
            fields: false,
        }
    }
}

/// How far an exploration is.
#[derive(Clone, Debug)]
pub enum Progress {
    /// It is about to do this.
    Doing(String),
    /// A finding, as soon as it is sure.
    Found(Box<Finding>),
}

/// An exploration that has seen the undisturbed runs.
pub struct Exploration<'a> {
    base: &'a Base,
    scenario: &'a Scenario,
    subject: &'a Subject,
    expected: Expected,
    quiet: Duration,
    reference: Run,
    report: Report,
}

impl Exploration<'_> {
    /// What is known so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Changes fields, if that is asked for, and plays every plan, as far as the budget goes.
    pub async fn run(
        mut self,
        options: &Options,
        mut progress: impl FnMut(Progress),
    ) -> Result<Report, Unusable> {
        let began = Instant::now();
        if options.fields {
            // Half of the time: the plans are to have their turn, too.
            let is_over = |one: &Self| {
                let spent = began.elapsed();
                one.report.findings.len() >= options.findings
                    || options.time.is_some_and(|time| spent > time / 2)
            };
            self.fields(options, is_over, &mut progress).await?;
        }
        let left = options
            .time
            .map(|time| time.saturating_sub(began.elapsed()));
        let options = Options {
            time: left,
            ..options.clone()
        };
        let mut report = self.plans(&options, &mut progress).await?;
        report.ran_for = began.elapsed();
        Ok(report)
    }

    /// Plays every plan of faults.
    async fn plans(
        mut self,
        options: &Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Report, Unusable> {
        let began = Instant::now();
        let facts = Facts {
            steps: &self.scenario.steps,
            reads_any_version: self.reference.reads_any_version,
            elects: self.reference.elects,
            is_virtual: self.base.pace.is_virtual,
        };
        let singles = triggers::single(&self.reference.records, facts);
        self.report.made = singles.len();
        let mut known: HashSet<Plan> = singles.iter().cloned().collect();
        let mut plans: VecDeque<Plan> = singles.into();
        let mut pairs: VecDeque<Plan> = VecDeque::new();
        let found = self.report.findings.iter();
        let mut wrongs: Vec<Wrong> = found.map(|finding| finding.wrong.clone()).collect();
        loop {
            let is_over = self.report.findings.len() >= options.findings
                || options.time.is_some_and(|time| began.elapsed() > time);
            let room = options.plans.saturating_sub(self.report.runs);
            let mut batch: Vec<Plan> = Vec::new();
            while !is_over && batch.len() < options.jobs.min(room) {
                match plans.pop_front().or_else(|| pairs.pop_front()) {
                    Some(plan) => batch.push(plan),
                    None => break,
                }
            }
            if batch.is_empty() {
                break;
            }
            let left = plans.len() + pairs.len();
            progress(Progress::Doing(format!(
                "{} plans run, {left} to go, {} found: {}",
                self.report.runs,
                self.report.findings.len(),
                batch[0]
            )));
            let mut playing = FuturesUnordered::new();
            for plan in batch {
                let (one, known) = (&self, wrongs.clone());
                playing.push(async move {
                    let run = one.play(&plan, None, one.base.pace.patience, &known).await;
                    (plan, run)
                });
            }
            let mut done = Vec::new();
            while let Some(one) = playing.next().await {
                done.push(one);
            }
            drop(playing);
            for (plan, run) in done {
                let run = run?;
                self.report.runs += 1;
                if !run.complete {
                    self.report.not_reached += 1;
                }
                let Some((step, wrong)) = run.wrong.clone() else {
                    if options.pairs && plan.0.len() == 1 {
                        let seconds =
                            triggers::second(&plan, &run.records, &self.reference.records);
                        let new = seconds
                            .into_iter()
                            .filter(|plan| known.insert(plan.clone()));
                        pairs.extend(new);
                    }
                    continue;
                };
                self.report.failed += 1;
                let alike = |finding: &&mut Finding| finding.wrong.is_like(&wrong);
                if let Some(finding) = self.report.findings.iter_mut().find(alike) {
                    finding.others += 1;
                    continue;
                }
                let of_a_kind = |finding: &&Finding| finding.wrong.title() == wrong.title();
                if self.report.findings.iter().filter(of_a_kind).count() >= OF_A_KIND {
                    continue;
                }
                progress(Progress::Doing(format!(
                    "checking {}: {plan}",
                    wrong.title().text()
                )));
                match self.confirm(&plan, step, &wrong).await? {
                    Some(finding) => {
                        wrongs.push(finding.wrong.clone());
                        progress(Progress::Found(Box::new(finding.clone())));
                        self.report.findings.push(finding);
                    }
                    None => self.report.unsteady += 1,
                }
            }
        }
        self.report.left_out = plans.len() + pairs.len();
        self.report.ran_for = began.elapsed();
        Ok(self.report)
    }

    /// Plays one plan as it was kept.
    pub async fn replay(mut self, kept: &Kept, times: usize) -> Result<Report, Unusable> {
        let plan = kept.plan().map_err(Unusable::Plan)?;
        self.report.made = 1;
        let change = kept.change().map_err(Unusable::Plan)?;
        for _ in 0..times {
            if let (Some(change), true) = (&change, plan.0.is_empty()) {
                self.report.runs += 1;
                if let Some((step, wrong, run)) = self.replay_change(change).await? {
                    self.report.failed += 1;
                    self.keep(kept, &plan, step, wrong, run.records);
                }
                continue;
            }
            let run = self.play(&plan, None, self.base.pace.patience, &[]).await?;
            self.report.runs += 1;
            if !run.complete {
                self.report.not_reached += 1;
            }
            if let Some((step, wrong)) = run.wrong {
                self.report.failed += 1;
                self.keep(kept, &plan, step, wrong, run.records);
            }
        }
        Ok(self.report)
    }

    /// Notes what the first replay that ended badly showed.
    fn keep(&mut self, kept: &Kept, plan: &Plan, step: usize, wrong: Wrong, records: Vec<Record>) {
        if self.report.findings.is_empty() {
            self.report.findings.push(Finding {
                kept: kept.clone(),
                plan: plan.clone(),
                wrong,
                step,
                records,
                others: 0,
            });
        }
    }

    /// A disturbed run of the whole scenario, or of what is left of it.
    async fn play(
        &self,
        plan: &Plan,
        part: Option<(&Scenario, &Expected)>,
        patience: Duration,
        known: &[Wrong],
    ) -> Result<Run, Unusable> {
        let (scenario, expected) = part.unwrap_or((self.scenario, &self.expected));
        let take = Take {
            steps: &scenario.steps,
            ignore: &scenario.ignore,
            plan,
            seed: 1,
            expected: Some(expected),
            goal: Some(expected),
            quiet: self.quiet,
            patience,
            known,
        };
        match self.base.play(self.subject, &take).await {
            // Undisturbed, the step was possible.
            Err(Unusable::Refused { what, why }) => Ok(Run {
                wrong: Some((scenario.steps.len(), Wrong::Broken(what, why))),
                complete: true,
                ..Run::default()
            }),
            other => other,
        }
    }
}
