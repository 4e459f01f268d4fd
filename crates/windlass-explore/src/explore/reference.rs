//! The undisturbed runs: what they agree on is expected of every other.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Exploration, Report};
use crate::plan::Plan;
use crate::race::Race;
use crate::scenario::Scenario;
use crate::subject::Subject;
use crate::trace::Happened;
use crate::triggers;
use crate::world::{Base, Expected, Pace, Run, Take, Unusable};

/// How many undisturbed runs there are.
const REFERENCES: u64 = 3;
/// The least time in which nothing happens in a process that has settled.
const QUIET: Duration = Duration::from_millis(300);

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
}

/// One undisturbed run.
pub(super) async fn reference(
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
