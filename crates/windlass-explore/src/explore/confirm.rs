//! What ended badly is played again, then with fewer faults and fewer steps.

use super::reference::reference;
use super::{Exploration, Finding, Kept};
use crate::judge::Wrong;
use crate::plan::{Fault, Plan};
use crate::scenario::Scenario;
use crate::shrink::smallest;
use crate::triggers;
use crate::world::{Expected, Unusable};

/// How many plans may be played to make one finding smaller.
const SHRINKS: usize = 12;

impl Exploration<'_> {
    /// Plays a plan that ended badly again, and with a pause in place of each fault. What is left is
    /// made smaller.
    pub(super) async fn confirm(
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
        let run = reference(self.base, &scenario, self.subject, 1, self.quiet, None)
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
