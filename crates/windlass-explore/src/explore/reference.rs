//! The undisturbed runs: what they agree on is expected of every other.

use std::collections::{BTreeMap, BTreeSet};
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
/// The longest.
const LONGEST: Duration = Duration::from_secs(12);

impl<'a> Exploration<'a> {
    /// Plays the scenario undisturbed.
    pub async fn begin(
        base: &'a Base,
        scenario: &'a Scenario,
        subject: &'a Subject,
    ) -> Result<Self, Unusable> {
        // The first waits long: one that sleeps for seconds between two of its writes looks like one
        // that has done everything.
        let first = reference(base, scenario, subject, 1, base.pace.quiet, None).await?;
        let quiet = if base.pace.is_virtual {
            base.pace.quiet
        } else {
            (first.longest_gap * 3 / 2 + QUIET).min(LONGEST)
        };
        let goal = Expected {
            states: first.states.clone(),
            ..Expected::default()
        };
        let others = (2..=REFERENCES)
            .map(|seed| reference(base, scenario, subject, seed, quiet, Some(&goal)));
        let mut runs = vec![first.clone()];
        // One after the other, unless several can run at a time.
        if subject.can_overlap() {
            runs.extend(futures::future::try_join_all(others).await?);
        } else {
            for other in others {
                runs.push(other.await?);
            }
        }
        let states: Vec<_> = runs.iter().map(|run| run.states.clone()).collect();
        let mask = triggers::mask(&states);
        let mut races: BTreeSet<Race> = BTreeSet::new();
        for run in &runs {
            races.extend(run.races.iter().cloned());
        }
        let mut deleted: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        for run in &runs {
            for (object, steps) in &run.deleted {
                let gone = steps.iter().map(|(_, gone)| *gone);
                deleted.entry(object.clone()).or_default().extend(gone);
            }
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
    quiet: Duration,
    goal: Option<&Expected>,
) -> Result<Run, Unusable> {
    let plan = Plan::default();
    let pace: Pace = base.pace;
    let take = Take {
        steps: &scenario.steps,
        ignore: &scenario.ignore,
        plan: &plan,
        seed,
        expected: None,
        goal,
        quiet,
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
