//! What an exploration found, for a person.

use std::fmt;

use super::judge::Wrong;
use super::points::Entry;
use windlass_explore::plan::Plan;

/// A plan under which a scenario ends badly.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Four letters that follow from the plan.
    pub id: String,
    /// The plan, as [`Exploration::replay`](super::Exploration::replay) takes it.
    pub plan: String,
    /// What is wrong.
    pub wrong: Wrong,
    /// Whether a second run ended the same way.
    pub repeats: bool,
    /// Why a real cluster may do what the plan does.
    why_legal: Vec<&'static str>,
}

impl Finding {
    pub(super) fn new(plan: &Plan, wrong: Wrong, repeats: bool) -> Self {
        let mut why_legal: Vec<&str> = plan.0.iter().map(|fault| fault.act.why_legal()).collect();
        why_legal.dedup();
        Self {
            id: plan.id(""),
            plan: plan.to_string(),
            wrong,
            repeats,
            why_legal,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "FOUND  {}", self.wrong)?;
        for fault in self.plan.split("; ") {
            writeln!(f, "  fault   {fault}")?;
        }
        for why in &self.why_legal {
            writeln!(f, "  legal   {why}")?;
        }
        if !self.repeats {
            writeln!(f, "  note    a second run of this plan ended differently")?;
        }
        let (id, plan) = (&self.id, &self.plan);
        writeln!(
            f,
            "  replay  cluster.explore(scenario).replay({plan:?}).await.expect_sound();"
        )?;
        writeln!(f, "  as a test, with your operator and scenario:")?;
        writeln!(f, "    #[windlass_cluster::test]")?;
        writeln!(
            f,
            "    async fn plan_{id}_ends_alike(cluster: TestCluster) {{"
        )?;
        writeln!(f, "        cluster.start(operator()).await;")?;
        writeln!(
            f,
            "        let report = cluster.explore(scenario).replay({plan:?}).await;"
        )?;
        writeln!(f, "        report.expect_sound();")?;
        write!(f, "    }}")
    }
}

/// What an exploration did and found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Writes of the operators in the undisturbed run.
    pub writes: usize,
    /// Events that were sent to them.
    pub events: usize,
    /// How many plans were run.
    pub runs: usize,
    /// How many were not, for want of budget.
    pub left_out: usize,
    /// How many runs never came to the point of one of their faults.
    pub not_reached: usize,
    /// What was found: of those that are wrong in the same way, the first.
    pub findings: Vec<Finding>,
    /// How many plans end badly in all.
    pub failed: usize,
    /// How many ended badly, and as badly with a pause in place of their faults.
    pub unclear: usize,
    /// Why nothing can be judged, if so.
    pub unsteady: Option<String>,
}

impl Report {
    pub(super) fn of(reference: &[Entry]) -> Self {
        let applied = |entry: &&Entry| matches!(entry, Entry::Applied { .. });
        let event = |entry: &&Entry| matches!(entry, Entry::Event(_));
        Self {
            writes: reference.iter().filter(applied).count(),
            events: reference.iter().filter(event).count(),
            ..Self::default()
        }
    }

    pub(super) fn unsteady(self, why: String) -> Self {
        Self {
            unsteady: Some(why),
            ..self
        }
    }

    /// Adds a finding, unless there are `most` of its kind.
    pub(super) fn add(&mut self, finding: Finding, most: usize) {
        self.failed += 1;
        let title = finding.wrong.title();
        let alike = self
            .findings
            .iter()
            .filter(|other| other.wrong.title() == title);
        let known = alike.clone().any(|other| other.wrong == finding.wrong);
        if !known && alike.count() < most {
            self.findings.push(finding);
        }
    }

    /// Whether the scenario could be judged, and no plan ends badly.
    pub fn is_sound(&self) -> bool {
        self.unsteady.is_none() && self.findings.is_empty()
    }

    /// Prints the report; panics with it when something was found, or nothing could be judged.
    ///
    /// A scenario in which the operators write nothing proves nothing, and panics too.
    pub fn expect_sound(&self) {
        assert!(self.is_sound(), "{self}");
        assert!(
            self.writes > 0,
            "the operators write nothing in this scenario\n{self}"
        );
        println!("{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "reference  {} writes, {} events",
            self.writes, self.events
        )?;
        if let Some(why) = &self.unsteady {
            return writeln!(f, "UNSTEADY   cannot judge this scenario: {why}");
        }
        writeln!(
            f,
            "plans      {} run, {} left out, {} did not reach their fault",
            self.runs, self.left_out, self.not_reached
        )?;
        writeln!(f, "failed     {}", self.failed)?;
        if self.unclear > 0 {
            writeln!(f, "unclear    {}, a pause does the same", self.unclear)?;
        }
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        Ok(())
    }
}
