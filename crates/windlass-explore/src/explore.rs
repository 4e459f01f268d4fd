//! An exploration: a scenario undisturbed, then with each fault that can make a difference.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};

use crate::judge::Wrong;
use crate::plan::{Fault, Plan};
use crate::race::Race;
use crate::scenario::Scenario;
use crate::shrink::smallest;
use crate::subject::Subject;
use crate::trace::{Happened, Record};
use crate::triggers;
use crate::world::{Base, Expected, Pace, Run, Take, Unusable};

/// How many undisturbed runs there are.
const REFERENCES: u64 = 3;
/// The least time in which nothing happens in a process that has settled.
const QUIET: Duration = Duration::from_millis(300);
/// After so many findings of one kind the others are only counted.
const OF_A_KIND: usize = 4;
/// How many plans may be played to make one finding smaller.
const SHRINKS: usize = 12;

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
}

impl Default for Options {
    fn default() -> Self {
        Self {
            plans: 1_000,
            time: None,
            jobs: 1,
            pairs: true,
            findings: usize::MAX,
        }
    }
}

/// A plan as it is kept in a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Four letters.
    pub id: String,
    /// The steps of the scenario that it takes, counted from one.
    pub steps: Vec<usize>,
    /// Its faults.
    pub faults: Vec<String>,
}

impl Kept {
    fn new(plan: &Plan, steps: &[usize]) -> Self {
        let faults: Vec<String> = plan.0.iter().map(ToString::to_string).collect();
        // FNV-1a: short, and the same in every release.
        let text = format!("{plan} {steps:?}");
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let letters = b"abcdefghijklmnopqrstuvwxyz234567";
        let id = (0..4).map(|at| {
            let index = usize::try_from((hash >> (40 + 5 * at)) & 31).unwrap_or_default();
            char::from(letters[index])
        });
        Self {
            id: id.collect(),
            steps: steps.to_vec(),
            faults,
        }
    }

    /// The plan in it.
    pub fn plan(&self) -> Result<Plan, String> {
        let faults = self.faults.iter().map(|fault| fault.parse::<Fault>());
        faults.collect::<Result<_, _>>().map(Plan)
    }
}

/// A plan under which the scenario ends badly.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What replays it.
    pub kept: Kept,
    /// The plan.
    pub plan: Plan,
    /// What is wrong.
    pub wrong: Wrong,
    /// After which step; 0 is the start of the operator.
    pub step: usize,
    /// What happened.
    pub records: Vec<Record>,
    /// How many other plans show the same.
    pub others: usize,
}

/// What an exploration did and found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The steps of the scenario, for a person.
    pub steps: Vec<String>,
    /// What happened in the first undisturbed run.
    pub reference: Vec<Record>,
    /// Writes of the operator in it.
    pub writes: usize,
    /// Of those, how many changed nothing.
    pub without_effect: usize,
    /// Events that were sent to the operator.
    pub events: usize,
    /// How long it took.
    pub took: Duration,
    /// How many undisturbed runs there were.
    pub references: usize,
    /// How many fields and objects differ among them, and are not compared.
    pub masked: usize,
    /// How many plans of one fault there are.
    pub made: usize,
    /// How many plans were run.
    pub runs: usize,
    /// How long that took.
    pub ran_for: Duration,
    /// How many were not, for want of budget.
    pub left_out: usize,
    /// How many runs never came to the point of one of their faults.
    pub not_reached: usize,
    /// How many ended badly once, and not again or also without the fault: nothing is concluded from them.
    pub unsteady: usize,
    /// What was found.
    pub findings: Vec<Finding>,
    /// How many plans ended badly in all.
    pub failed: usize,
    /// Blind writes over what the operator had not been shown, in the undisturbed runs.
    pub races: Vec<Race>,
}

impl Report {
    /// Whether no plan ends badly.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
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

impl<'a> Exploration<'a> {
    /// Plays the scenario undisturbed.
    pub async fn begin(
        base: &'a Base,
        scenario: &'a Scenario,
        subject: &'a Subject,
    ) -> Result<Self, Unusable> {
        let mut runs = Vec::new();
        for seed in 1..=REFERENCES {
            runs.push(reference(base, scenario, subject, seed).await?);
        }
        let states: Vec<_> = runs.iter().map(|run| run.states.clone()).collect();
        let mask = triggers::mask(&states);
        let gap = runs
            .iter()
            .map(|run| run.longest_gap)
            .max()
            .unwrap_or_default();
        let quiet = if base.pace.is_virtual {
            base.pace.quiet
        } else {
            (gap * 3).clamp(QUIET, base.pace.quiet * 2)
        };
        let mut races: BTreeSet<Race> = BTreeSet::new();
        for run in &runs {
            races.extend(run.races.iter().cloned());
        }
        let mut runs = runs.into_iter();
        let Some(first) = runs.next() else {
            return Err(Unusable::Plan("there is no undisturbed run".to_owned()));
        };
        let mut deleted: BTreeSet<String> = BTreeSet::new();
        for run in std::iter::once(&first).chain(runs.as_slice()) {
            deleted.extend(run.deleted.iter().map(|(_, object)| object.clone()));
        }
        let at_start = first.records.iter().filter(|record| record.step == 0);
        let at_start = at_start.filter_map(|record| match &record.happened {
            Happened::Write { request, .. } => Some(request.clone()),
            _ => None,
        });
        let expected = Expected {
            states: first.states.clone(),
            deleted,
            at_start: at_start.collect(),
            mask,
        };
        let mut report = Report {
            steps: scenario.steps.iter().map(ToString::to_string).collect(),
            reference: first.records.clone(),
            took: first.took,
            references: usize::try_from(REFERENCES).unwrap_or_default(),
            masked: expected.mask.objects.len() + expected.mask.fields.len(),
            races: races.into_iter().collect(),
            ..Report::default()
        };
        for record in &first.records {
            match &record.happened {
                Happened::Write { changes, code, .. } => {
                    report.writes += 1;
                    let has_effect = !changes.is_empty() || *code >= 300;
                    report.without_effect += usize::from(!has_effect);
                }
                Happened::Event { .. } => report.events += 1,
                _ => {}
            }
        }
        if report.writes == 0 {
            return Err(Unusable::Undisturbed(
                "the operator writes nothing in this scenario".to_owned(),
            ));
        }
        Ok(Self {
            base,
            scenario,
            subject,
            expected,
            quiet,
            reference: first,
            report,
        })
    }

    /// What is known so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Plays every plan, as far as the budget goes.
    pub async fn run(
        mut self,
        options: &Options,
        mut progress: impl FnMut(Progress),
    ) -> Result<Report, Unusable> {
        let began = Instant::now();
        let steps = self.scenario.steps.len();
        let singles = triggers::single(
            &self.reference.records,
            steps,
            self.reference.reads_any_version,
        );
        self.report.made = singles.len();
        let mut known: HashSet<Plan> = singles.iter().cloned().collect();
        let mut plans: VecDeque<Plan> = singles.into();
        let mut pairs: VecDeque<Plan> = VecDeque::new();
        let mut wrongs: Vec<Wrong> = Vec::new();
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
        for _ in 0..times {
            let run = self.play(&plan, None, self.base.pace.patience, &[]).await?;
            self.report.runs += 1;
            if !run.complete {
                self.report.not_reached += 1;
            }
            if let Some((step, wrong)) = run.wrong {
                self.report.failed += 1;
                if self.report.findings.is_empty() {
                    self.report.findings.push(Finding {
                        kept: kept.clone(),
                        plan: plan.clone(),
                        wrong,
                        step,
                        records: run.records,
                        others: 0,
                    });
                }
            }
        }
        Ok(self.report)
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

    /// Plays a plan that ended badly again, and with a pause in place of each fault. What is left is
    /// made smaller.
    async fn confirm(
        &self,
        plan: &Plan,
        step: usize,
        wrong: &Wrong,
    ) -> Result<Option<Finding>, Unusable> {
        let patience = self.base.pace.patience;
        let again = self.play(plan, None, patience, &[]).await?;
        let Some((_, second)) = again.wrong.filter(|(_, second)| second.is_like(wrong)) else {
            return Ok(None);
        };
        let control = self
            .play(&triggers::control(plan), None, patience, &[])
            .await?;
        if control.wrong.is_some() {
            return Ok(None);
        }
        let (mut plan, mut records, mut wrong) = (plan.clone(), again.records, second);
        if plan.0.len() > 1 {
            let faults = smallest(plan.0.clone(), async |faults: &[Fault]| {
                let candidate = Plan(faults.to_vec());
                !faults.is_empty() && self.shows(&candidate, None, &wrong).await
            })
            .await;
            plan = Plan(faults);
        }
        let (steps, part) = self.fewer_steps(&plan, step, &wrong).await;
        if let Some((scenario, expected)) = &part {
            let known = [wrong.clone()];
            let run = self
                .play(&plan, Some((scenario, expected)), patience, &known)
                .await?;
            if let Some((_, found)) = run.wrong {
                (records, wrong) = (run.records, found);
            }
        }
        Ok(Some(Finding {
            kept: Kept::new(&plan, &steps),
            plan,
            wrong,
            step,
            records,
            others: 0,
        }))
    }

    async fn shows(
        &self,
        plan: &Plan,
        part: Option<(&Scenario, &Expected)>,
        wrong: &Wrong,
    ) -> bool {
        let known = [wrong.clone()];
        let run = self.play(plan, part, self.base.pace.patience, &known).await;
        run.is_ok_and(|run| run.wrong.is_some_and(|(_, found)| found.is_like(wrong)))
    }

    /// The steps that a finding takes, and the part of the scenario if that is not all of it.
    async fn fewer_steps(
        &self,
        plan: &Plan,
        step: usize,
        wrong: &Wrong,
    ) -> (Vec<usize>, Option<(Scenario, Expected)>) {
        let names_step = plan
            .0
            .iter()
            .any(|fault| fault.at.what.starts_with("step "));
        // Later steps were not played when it was found.
        let all: Vec<usize> = (1..=step).collect();
        if names_step || all.len() < 2 {
            return (all, None);
        }
        let mut left = SHRINKS;
        let mut best = None;
        let kept = smallest(all.clone(), async |steps: &[usize]| {
            if left == 0 || steps.is_empty() {
                return false;
            }
            left -= 1;
            let Some(part) = self.part(steps).await else {
                return false;
            };
            let shows = self.shows(plan, Some((&part.0, &part.1)), wrong).await;
            if shows {
                best = Some(part);
            }
            shows
        })
        .await;
        (kept, best)
    }

    /// The scenario with these steps only, if it can be played undisturbed.
    async fn part(&self, steps: &[usize]) -> Option<(Scenario, Expected)> {
        let scenario = part(self.scenario, steps);
        let run = reference(self.base, &scenario, self.subject, 1)
            .await
            .ok()?;
        let expected = Expected {
            states: run.states,
            ..self.expected.clone()
        };
        Some((scenario, expected))
    }
}

/// A scenario with only some of its steps, counted from one.
pub fn part(scenario: &Scenario, steps: &[usize]) -> Scenario {
    let kept = steps
        .iter()
        .filter_map(|number| scenario.steps.get(number.checked_sub(1)?));
    Scenario {
        steps: kept.cloned().collect(),
        ..scenario.clone()
    }
}

/// One undisturbed run.
async fn reference(
    base: &Base,
    scenario: &Scenario,
    subject: &Subject,
    seed: u64,
) -> Result<Run, Unusable> {
    let plan = Plan::default();
    let pace: Pace = base.pace;
    let take = Take {
        steps: &scenario.steps,
        ignore: &scenario.ignore,
        plan: &plan,
        seed,
        expected: None,
        quiet: pace.quiet,
        patience: pace.patience,
        known: &[],
    };
    let run = base.play(subject, &take).await?;
    let ended = run
        .records
        .iter()
        .find_map(|record| match &record.happened {
            Happened::Ended(why) => Some(why),
            _ => None,
        });
    if let (None, Some(why)) = (&run.wrong, ended) {
        return Err(Unusable::Undisturbed(format!("the operator {why}")));
    }
    match &run.wrong {
        Some((step, wrong)) => {
            let when = match step
                .checked_sub(1)
                .and_then(|index| scenario.steps.get(index))
            {
                Some(step) => format!("after `{step}`"),
                None => "when it starts".to_owned(),
            };
            Err(Unusable::Undisturbed(format!(
                "the operator fails {when}: {wrong}"
            )))
        }
        None => Ok(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_plan_has_four_letters_that_follow_from_it() {
        let plan: Plan = "kill-after operator: create pods in default #1"
            .parse()
            .unwrap();
        let kept = Kept::new(&plan, &[1, 3]);
        assert_eq!(kept.id.len(), 4);
        assert_eq!(kept, Kept::new(&plan, &[1, 3]));
        assert_ne!(kept.id, Kept::new(&plan, &[1]).id);
        assert_eq!(kept.plan(), Ok(plan));
    }
}
