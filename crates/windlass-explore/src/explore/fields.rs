//! The fields of a sample: each is changed and taken back, and what comes of it is compared.
//!
//! There is no undisturbed run to compare with: the operator's own behaviour is. After a change is
//! taken back the cluster is as before it, and a changed object is treated alike whether it was made
//! so or became so. Only objects that the operator writes itself are compared, without their status
//! and counters; claims stay by design when they are no longer asked for.

use super::{Exploration, Finding, Kept, Options, Progress};
use crate::fields::{Change, changes};
use crate::judge::Wrong;
use crate::plan::Plan;
use crate::scenario::{Scenario, Step};
use crate::state::{Difference, State};
use crate::world::{Run, Take, Unusable};

/// Kinds that keep what was, or are written by controllers of the cluster.
const KEPT: &[&str] = &[
    "persistentvolumeclaims ",
    "persistentvolumes ",
    "jobs.batch ",
    "controllerrevisions.apps ",
    "replicasets.apps ",
    "endpoints ",
    "endpointslices.discovery.k8s.io ",
];
/// Kinds that make pods.
const MAKERS: &[&str] = &[
    "statefulsets.",
    "deployments.",
    "daemonsets.",
    "jobs.",
    "replicasets.",
];
/// Parts of names of fields that count.
const COUNTERS: &[&str] = &[
    "generation",
    "revision",
    "resourceversion",
    "checksum",
    "hash",
];
/// How many plans of faults follow each change that goes well.
const PLANS: usize = 40;

/// What came of one change.
enum Outcome {
    /// The API server refuses the changed object.
    Refused,
    /// All went well.
    Well,
    /// This is wrong, after this step.
    Wrong(usize, Wrong, Box<Run>),
}

/// A scenario in which the sample is applied, changed, and applied again as it was.
pub fn varied(scenario: &Scenario, change: &Change) -> Option<Scenario> {
    let (objects, object) = first(scenario, change)?;
    let changed = change.applied(object);
    let steps = vec![
        Step::Apply(objects.to_vec()),
        Step::Apply(vec![changed]),
        Step::Apply(vec![object.clone()]),
    ];
    Some(Scenario {
        steps,
        ..scenario.clone()
    })
}

/// What is applied first, and the object of it that is changed.
fn first<'a>(
    scenario: &'a Scenario,
    change: &Change,
) -> Option<(&'a [serde_json::Value], &'a serde_json::Value)> {
    let objects = samples(scenario)?;
    Some((objects, objects.get(change.object)?))
}

fn samples(scenario: &Scenario) -> Option<&[serde_json::Value]> {
    scenario.steps.iter().find_map(|step| match step {
        Step::Apply(objects) => Some(&objects[..]),
        _ => None,
    })
}

impl Exploration<'_> {
    /// Tries every change of the fields of what is applied first.
    pub(super) async fn fields(
        &mut self,
        options: &Options,
        is_over: impl Fn(&Self) -> bool,
        progress: &mut impl FnMut(Progress),
    ) -> Result<(), Unusable> {
        let samples = samples(self.scenario).unwrap_or_default();
        let all = changes(samples, &self.scenario.setup);
        self.report.changes = all.len();
        let mut well = Vec::new();
        for change in all {
            if is_over(self) {
                return Ok(());
            }
            progress(Progress::Doing(format!(
                "{} changes of fields tried, {} found: {}",
                self.report.changes_tried,
                self.report.findings.len(),
                change.title()
            )));
            self.report.changes_tried += 1;
            match self.try_change(&change).await? {
                Outcome::Refused => self.report.changes_refused += 1,
                Outcome::Well => well.push(change),
                Outcome::Wrong(step, wrong, run) => {
                    self.add_change(&change, step, wrong, run, progress).await?;
                }
            }
        }
        for change in well {
            if is_over(self) {
                return Ok(());
            }
            self.disturb(&change, options, progress).await?;
        }
        Ok(())
    }

    /// Adds what a change shows, if it does so again.
    async fn add_change(
        &mut self,
        change: &Change,
        step: usize,
        wrong: Wrong,
        run: Box<Run>,
        progress: &mut impl FnMut(Progress),
    ) -> Result<(), Unusable> {
        self.report.failed += 1;
        if let Some(known) = self
            .report
            .findings
            .iter_mut()
            .find(|known| known.wrong.is_like(&wrong))
        {
            known.others += 1;
            return Ok(());
        }
        match self.try_change(change).await? {
            Outcome::Wrong(_, again, _) if again.is_like(&wrong) => {
                let steps: Vec<usize> = (1..=step.max(1)).collect();
                let plan = Plan::default();
                let finding = Finding {
                    kept: Kept::of_change(&plan, &steps, Some(change)),
                    plan,
                    wrong,
                    step,
                    records: run.records,
                    others: 0,
                };
                progress(Progress::Found(Box::new(finding.clone())));
                self.report.findings.push(finding);
            }
            _ => self.report.unsteady += 1,
        }
        Ok(())
    }

    /// Faults on top of a change that goes well alone.
    async fn disturb(
        &mut self,
        change: &Change,
        options: &Options,
        progress: &mut impl FnMut(Progress),
    ) -> Result<(), Unusable> {
        let Some(scenario) = varied(self.scenario, change) else {
            return Ok(());
        };
        // One that is unsteady by itself is not judged.
        let Ok(inner) = Exploration::begin(self.base, &scenario, self.subject).await else {
            return Ok(());
        };
        let options = Options {
            plans: PLANS,
            pairs: false,
            fields: false,
            findings: options.findings.saturating_sub(self.report.findings.len()),
            ..options.clone()
        };
        let mut nested = |now: Progress| {
            if let Progress::Doing(what) = now {
                progress(Progress::Doing(format!("{}: {what}", change.title())));
            }
        };
        let nested: &mut dyn FnMut(Progress) = &mut nested;
        let report = inner.plans(&options, nested).await?;
        self.report.runs += report.runs;
        self.report.failed += report.failed;
        self.report.unsteady += report.unsteady;
        for mut finding in report.findings {
            let mut known = self.report.findings.iter_mut();
            if let Some(known) = known.find(|known| known.wrong.is_like(&finding.wrong)) {
                known.others += 1;
                continue;
            }
            finding.kept = Kept::of_change(&finding.plan, &finding.kept.steps, Some(change));
            progress(Progress::Found(Box::new(finding.clone())));
            self.report.findings.push(finding);
        }
        Ok(())
    }

    /// Plays one change, and compares what comes of it.
    pub(super) async fn replay_change(
        &self,
        change: &Change,
    ) -> Result<Option<(usize, Wrong, Box<Run>)>, Unusable> {
        Ok(match self.try_change(change).await? {
            Outcome::Wrong(step, wrong, run) => Some((step, wrong, run)),
            Outcome::Refused | Outcome::Well => None,
        })
    }

    async fn try_change(&self, change: &Change) -> Result<Outcome, Unusable> {
        let Some(scenario) = varied(self.scenario, change) else {
            return Ok(Outcome::Refused);
        };
        let Some(run) = self.undisturbed(&scenario.steps).await? else {
            return Ok(Outcome::Refused);
        };
        if let Some((step, wrong)) = run.wrong.clone() {
            return Ok(Outcome::Wrong(step, wrong, Box::new(run)));
        }
        let state = |run: &Run, step: usize| run.states.get(step).cloned().flatten();
        if let (Some(before), Some(after)) = (state(&run, 1), state(&run, 3)) {
            let differences = self.telling(&before, &after);
            if !differences.is_empty() {
                return Ok(Outcome::Wrong(
                    3,
                    Wrong::Lingers(differences),
                    Box::new(run),
                ));
            }
        }
        let Some((objects, object)) = first(self.scenario, change) else {
            return Ok(Outcome::Refused);
        };
        let mut objects = objects.to_vec();
        objects[change.object] = change.applied(object);
        let Some(fresh) = self.undisturbed(&[Step::Apply(objects)]).await? else {
            return Ok(Outcome::Refused);
        };
        if let Some((step, wrong)) = fresh.wrong.clone() {
            return Ok(Outcome::Wrong(step, wrong, Box::new(fresh)));
        }
        if let (Some(made), Some(changed)) = (state(&fresh, 1), state(&run, 2)) {
            let differences = self.telling(&made, &changed);
            if !differences.is_empty() {
                return Ok(Outcome::Wrong(
                    2,
                    Wrong::ByItsPast(differences),
                    Box::new(run),
                ));
            }
        }
        Ok(Outcome::Well)
    }

    /// A run that nothing disturbs; none if the API server refuses a step.
    async fn undisturbed(&self, steps: &[Step]) -> Result<Option<Run>, Unusable> {
        let plan = Plan::default();
        let take = Take {
            steps,
            ignore: &self.scenario.ignore,
            plan: &plan,
            seed: 1,
            expected: None,
            goal: None,
            quiet: self.quiet,
            patience: self.base.pace.patience,
            known: &[],
        };
        match self.base.play(self.subject, &take).await {
            Ok(run) => Ok(Some(run)),
            Err(Unusable::Refused { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// The differences for which the operator is to blame.
    fn telling(&self, one: &State, other: &State) -> Vec<Difference> {
        let makes_pods = one
            .0
            .keys()
            .any(|name| MAKERS.iter().any(|maker| name.starts_with(maker)));
        let all = one.differences(other, &self.expected.mask).into_iter();
        let telling = all.filter(|difference| {
            let is_kept = KEPT.iter().any(|kind| difference.object.starts_with(kind));
            let is_pod = makes_pods && difference.object.starts_with("pods ");
            let field = difference
                .field
                .as_deref()
                .unwrap_or_default()
                .to_lowercase();
            let counts = COUNTERS.iter().any(|part| field.contains(part));
            !is_kept && !is_pod && !counts && !field.starts_with("status")
        });
        telling.collect()
    }
}
