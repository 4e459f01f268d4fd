//! What an exploration found, and plans as they are kept in files.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{part, varied};
use crate::fields::Change;
use crate::judge::Wrong;
use crate::plan::{Fault, Plan};
use crate::race::Race;
use crate::scenario::Scenario;
use crate::trace::Record;

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
    /// The change of a field that the sample is applied with, and that is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

impl Kept {
    pub(super) fn new(plan: &Plan, steps: &[usize]) -> Self {
        Self::of_change(plan, steps, None)
    }

    /// A plan for a scenario in which a field is changed.
    pub(super) fn of_change(plan: &Plan, steps: &[usize], change: Option<&Change>) -> Self {
        let faults: Vec<String> = plan.0.iter().map(ToString::to_string).collect();
        let change = change.map(ToString::to_string);
        let with = match &change {
            Some(change) => format!(" {steps:?} {change}"),
            None => format!(" {steps:?}"),
        };
        Self {
            id: plan.id(&with),
            steps: steps.to_vec(),
            faults,
            change,
        }
    }

    /// The scenario that it is played in, of the one that was explored.
    pub fn scenario(&self, whole: &Scenario) -> Result<Scenario, String> {
        Ok(match self.change()? {
            None => part(whole, &self.steps),
            // It is made of the sample again.
            Some(_) if self.faults.is_empty() => whole.clone(),
            Some(change) => {
                let varied = varied(whole, &change);
                let varied = varied.ok_or("the scenario applies nothing that could be changed")?;
                part(&varied, &self.steps)
            }
        })
    }

    /// The change in it.
    pub fn change(&self) -> Result<Option<Change>, String> {
        self.change.as_deref().map(str::parse).transpose()
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
    /// How many changes of fields there are.
    pub changes: usize,
    /// How many were tried.
    pub changes_tried: usize,
    /// How many of those the API server refused.
    pub changes_refused: usize,
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
