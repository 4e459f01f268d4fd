//! What to do for a release now: the state machine of the Helm operator, without a cluster.
//!
//! | latest revision | what is done |
//! | --- | --- |
//! | none, uninstalled | a revision `pending-install` begins |
//! | pending | it goes on: hooks before, objects, hooks after; or a new one begins, because the values changed |
//! | deployed, as rendered now | its objects are kept as they are |
//! | deployed, and rendered otherwise now | a revision `pending-upgrade` begins |
//! | failed, and none deployed | its objects are deleted; tried again after a while or a change |
//! | failed, another deployed | that one is brought back by a revision `pending-rollback` |
//!
//! A revision is written before its first object and again when all of its objects are there. All
//! that is decided depends on what is stored, so it goes on after a crash where it was.

mod hooks;
mod objects;
mod removal;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;
use windlass::Event;
use windlass_charts::{Capabilities, Chart, Lookup, Options, Rendered, Values, render};

use super::annotations::{Annotations, PREFIX};
use super::release::{Contents, Release, Status as Stage};
use super::seed::seed;
use super::stages::Operation;
use super::status::{Reason, Status, Type};
use super::values::values_of;
use crate::Wanted;
use hooks::Hooks;

pub use removal::{Removal, removal};

/// What a plan is made from.
pub struct Situation<'a> {
    /// The custom resource.
    pub parent: &'a Value,
    /// The chart.
    pub chart: &'a Chart,
    /// What `watches.yaml` overrides.
    pub overrides: &'a Overrides,
    /// The revisions of the release, the latest last.
    pub history: &'a [Release],
    /// What the cluster can do.
    pub capabilities: &'a Capabilities,
    /// Where templates look objects up.
    pub lookup: Option<Arc<dyn Lookup>>,
    /// The object as it is in the cluster.
    pub live: &'a dyn Fn(&Value) -> Option<Arc<Value>>,
    /// The time.
    pub now: Timestamp,
    /// How long a release that failed is left alone if nothing changes.
    pub retry_after: Duration,
}

/// Values of `watches.yaml` that win over those of objects.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The values.
    pub values: Values,
    /// Their paths and texts, as events show them.
    pub shown: Vec<(String, String)>,
}

/// How many revisions are kept.
pub const MAX_HISTORY: usize = 10;

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Revisions to be written before the first object.
    pub before: Vec<Release>,
    /// Revisions to be written when all stages are applied.
    pub after: Vec<Release>,
    /// Revisions to be deleted then.
    pub forget: Vec<u64>,
    /// The objects, in stages.
    pub stages: Vec<Vec<Wanted>>,
    /// The status while it is being done.
    pub status: Value,
    /// The status when all stages are applied.
    pub done_status: Value,
    /// When to look again though nothing changed.
    pub again: Option<Duration>,
    /// Events about the custom resource.
    pub events: Vec<Event>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A release of the name belongs to something else.
    #[error(
        "duplicate release name: found existing release with name {name:?} for chart {chart:?}"
    )]
    AnotherChart {
        /// The release.
        name: String,
        /// Its chart.
        chart: String,
    },
    /// The custom resource is wrong.
    #[error("{0}")]
    Parent(String),
    /// The chart does not render.
    #[error("{0}")]
    Render(String),
}

/// What to do for a release now.
pub fn plan(situation: &Situation<'_>) -> Result<Plan, PlanError> {
    Planner::new(situation)?.plan()
}

struct Planner<'a> {
    at: &'a Situation<'a>,
    name: &'a str,
    namespace: &'a str,
    values: Values,
    annotations: Annotations,
    now: String,
    status: Status,
    history: Vec<Release>,
    plan: Plan,
}

impl<'a> Planner<'a> {
    fn new(at: &'a Situation<'a>) -> Result<Self, PlanError> {
        let text = |name: &str| at.parent["metadata"][name].as_str().unwrap_or_default();
        Ok(Self {
            at,
            name: text("name"),
            namespace: text("namespace"),
            values: values_of(at.parent, &at.overrides.values).map_err(PlanError::Parent)?,
            annotations: Annotations::of(at.parent).map_err(PlanError::Parent)?,
            now: shown(at.now),
            status: Status::of(at.parent),
            history: at.history.to_vec(),
            plan: Plan::default(),
        })
    }

    fn plan(mut self) -> Result<Plan, PlanError> {
        let retry_after = self.annotations.reconcile_period;
        let retry_after = retry_after.unwrap_or(self.at.retry_after);
        self.status
            .set(Type::Initialized, true, None, "", &self.now);
        let Some(latest) = self.history.last().cloned() else {
            return self.begin(Operation::Install);
        };
        if !latest.chart_name().is_empty() && latest.chart_name() != self.at.chart.name() {
            return Err(PlanError::AnotherChart {
                name: self.name.to_owned(),
                chart: latest.chart_name().to_owned(),
            });
        }
        let deployed = self
            .history
            .iter()
            .rev()
            .find(|one| one.status() == Stage::Deployed);
        let deployed = deployed.cloned();
        match latest.status() {
            Stage::PendingInstall => self.resume(latest, Operation::Install),
            Stage::PendingUpgrade => self.resume(latest, Operation::Upgrade),
            Stage::PendingRollback => self.go_on(latest, Operation::Rollback),
            Stage::Deployed if self.is_current(&latest)? => self.keep(&latest),
            Stage::Deployed => match self.rolled_back_from(&latest) {
                // What failed would fail again.
                Some(failed)
                    if self.is_current(&failed)? && !self.is_over(&failed, retry_after) =>
                {
                    self.failed(Reason::UpgradeError, failed.description());
                    self.plan.again = Some(retry_after);
                    self.keep(&latest)
                }
                _ => self.begin(Operation::Upgrade),
            },
            Stage::Failed => match deployed {
                Some(deployed) if self.is_current(&latest)? => {
                    self.failed(Reason::UpgradeError, latest.description());
                    let revision = latest.revision() + 1;
                    let back = Release::rollback_to(
                        &deployed,
                        revision,
                        Stage::PendingRollback,
                        &self.now,
                    );
                    if !self.annotations.rollback_force {
                        self.ignores("rollback-force: false");
                    }
                    self.plan.before.push(back.clone());
                    self.history.push(back.clone());
                    self.go_on(back, Operation::Rollback)
                }
                Some(_) => self.begin(Operation::Upgrade),
                None if self.is_current(&latest)? && !self.is_over(&latest, retry_after) => {
                    self.failed(Reason::InstallError, latest.description());
                    self.status.remove(Type::Deployed);
                    self.status.set_release(None);
                    self.plan.again = Some(retry_after);
                    Ok(self.finish())
                }
                None => self.begin(Operation::Install),
            },
            Stage::Uninstalled | Stage::Uninstalling | Stage::Superseded | Stage::Unknown => {
                match deployed {
                    Some(_) => self.begin(Operation::Upgrade),
                    None => self.begin(Operation::Install),
                }
            }
        }
    }

    fn render(&self, revision: u64, is_upgrade: bool) -> Result<Rendered, PlanError> {
        let metadata = &self.at.parent["metadata"];
        // The same time in every rendering, so that a certificate is the same one.
        let created = metadata["creationTimestamp"].as_str();
        let created = created
            .and_then(|text| text.parse().ok())
            .unwrap_or(self.at.now);
        let options = Options {
            name: self.name.to_owned(),
            namespace: self.namespace.to_owned(),
            revision: i64::try_from(revision).unwrap_or(i64::MAX),
            is_upgrade,
            capabilities: self.at.capabilities.clone(),
            seed: seed(metadata["uid"].as_str().unwrap_or_default()),
            now: created.to_zoned(TimeZone::UTC),
            lookup: self.at.lookup.clone(),
            ..Options::default()
        };
        render(self.at.chart, &self.values, &options)
            .map_err(|error| PlanError::Render(error.to_string()))
    }

    /// Whether a revision is what would be rendered now in its place.
    fn is_current(&self, release: &Release) -> Result<bool, PlanError> {
        let revision = release.rollback_revision().unwrap_or(release.revision());
        // Which of the two it was is not stored.
        let likely = revision > 1;
        for is_upgrade in [likely, !likely] {
            let rendered = self.render(revision, is_upgrade)?;
            if rendered.manifest() == release.manifest() && release.has_hooks_of(&rendered) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The revision that failed, if the latest one brought back the one before that.
    fn rolled_back_from(&self, latest: &Release) -> Option<Release> {
        latest.rollback_revision()?;
        let before = self.history.iter().rev().nth(1)?;
        (before.status() == Stage::Failed).then(|| before.clone())
    }

    fn is_over(&self, failed: &Release, after: Duration) -> bool {
        let since = failed
            .last_deployed()
            .and_then(|text| text.parse::<Timestamp>().ok());
        since.is_none_or(|since| {
            let elapsed = self.at.now.duration_since(since);
            Duration::try_from(elapsed).is_ok_and(|elapsed| elapsed >= after)
        })
    }

    fn failed(&mut self, reason: Reason, message: &str) {
        self.status
            .set(Type::ReleaseFailed, true, Some(reason), message, &self.now);
    }

    /// Begins a revision.
    fn begin(mut self, operation: Operation) -> Result<Plan, PlanError> {
        let revision = self.history.last().map_or(0, Release::revision) + 1;
        let rendered = self.render(revision, operation == Operation::Upgrade)?;
        let contents = Contents {
            name: self.name,
            namespace: self.namespace,
            revision,
            chart: self.at.chart,
            config: &self.values,
            rendered: &rendered,
        };
        let (status, description) = match operation {
            Operation::Install => (Stage::PendingInstall, "Initial install underway"),
            _ => (Stage::PendingUpgrade, "Preparing upgrade"),
        };
        let first = self.history.iter().find_map(Release::first_deployed);
        let release = Release::new(&contents, status, description, &self.now, first);
        for (path, value) in &self.at.overrides.shown {
            let note =
                format!("Chart value {path:?} overridden to {value:?} by operator's watches.yaml");
            self.plan
                .events
                .push(Event::warning("OverrideValuesInUse", note));
        }
        if operation == Operation::Upgrade && self.annotations.upgrade_force {
            self.ignores("upgrade-force: true");
        }
        self.plan.before.push(release.clone());
        self.history.push(release.clone());
        self.go_on(release, operation)
    }

    /// Says that an annotation asks for something that this operator does not do.
    fn ignores(&mut self, annotation: &str) {
        let note = format!(
            "Annotation {PREFIX}{annotation} has no effect: objects are applied server-side, and never replaced"
        );
        self.plan
            .events
            .push(Event::warning("AnnotationIgnored", note));
    }

    /// Goes on with a pending revision, unless it is not what is wanted any more.
    fn resume(mut self, mut latest: Release, operation: Operation) -> Result<Plan, PlanError> {
        if self.is_current(&latest)? {
            return self.go_on(latest, operation);
        }
        let why = format!("Replaced by revision {}", latest.revision() + 1);
        latest.set_status(Stage::Failed, &why);
        self.replace(&latest);
        self.begin(operation)
    }

    /// A revision that is in the history, to be written as it is now.
    fn replace(&mut self, release: &Release) {
        let revision = release.revision();
        self.plan.before.retain(|one| one.revision() != revision);
        self.plan.before.push(release.clone());
        for one in &mut self.history {
            if one.revision() == revision {
                *one = release.clone();
            }
        }
    }

    /// The stages of a pending revision, from where it is.
    fn go_on(mut self, mut release: Release, operation: Operation) -> Result<Plan, PlanError> {
        // Before its definition is served nothing can be said of an object of a kind.
        if operation == Operation::Install
            && let Some(definitions) = self.definitions()?
        {
            self.plan.stages = vec![definitions];
            return Ok(self.finish());
        }
        let mut stages = Vec::new();
        let mut hooks = Hooks::new(&mut release, self.at.live, &self.now);
        let before = hooks.stages(operation.before())?;
        let after = hooks.stages(operation.after())?;
        let (changed, failure) = (hooks.changed, hooks.failure);
        if let Some(why) = failure {
            let description = match operation {
                Operation::Install => format!("Release {:?} failed: {why}", self.name),
                Operation::Rollback => format!("Rollback failed: {why}"),
                _ => format!("Upgrade {:?} failed: {why}", self.name),
            };
            release.set_status(Stage::Failed, &description);
            self.replace(&release);
            let mut next = Planner::new(self.at)?;
            next.history = self.history;
            next.plan.before = self.plan.before;
            next.plan.events = self.plan.events;
            return next.plan();
        }
        if changed {
            self.replace(&release);
        }
        stages.extend(before);
        stages.extend(self.objects(release.manifest())?);
        stages.extend(after);
        self.plan.stages = stages;

        let mut done = release.clone();
        let description = match operation {
            Operation::Install => "Install complete".to_owned(),
            Operation::Rollback => release.description().to_owned(),
            _ => "Upgrade complete".to_owned(),
        };
        done.set_status(Stage::Deployed, &description);
        for one in &self.history {
            if one.status() == Stage::Deployed {
                let mut old = one.clone();
                old.set_status(Stage::Superseded, one.description());
                self.plan.after.push(old);
            }
        }
        self.plan.after.push(done.clone());
        let surplus = self.history.len().saturating_sub(MAX_HISTORY);
        let old = self.history.iter().map(Release::revision);
        self.plan.forget = old.take(surplus).collect();

        let status = self.status.clone();
        self.deployed(&done, operation == Operation::Rollback);
        let done_status = self.status.clone().into_value();
        self.status = status;
        let mut plan = self.finish();
        plan.done_status = done_status;
        Ok(plan)
    }

    /// Keeps the objects of the deployed revision as they are.
    fn keep(mut self, release: &Release) -> Result<Plan, PlanError> {
        self.plan.stages = self.objects(release.manifest())?;
        let remaining = hooks::remaining(release, self.at.live)?;
        self.plan.stages.push(remaining);
        let is_back = self.status.is(Type::ReleaseFailed) && self.plan.again.is_some();
        self.deployed(release, is_back);
        Ok(self.finish())
    }

    /// Says that a revision is deployed. What failed stays said if it was brought back because of
    /// that.
    fn deployed(&mut self, release: &Release, keeps_failure: bool) {
        let reason = if release.revision() == 1 {
            Reason::InstallSuccessful
        } else {
            Reason::UpgradeSuccessful
        };
        if !keeps_failure {
            self.status.remove(Type::ReleaseFailed);
        }
        self.status.remove(Type::Irreconcilable);
        let now = self.now.clone();
        self.status
            .set(Type::Deployed, true, Some(reason), release.notes(), &now);
        self.status
            .set_release(Some((release.name(), release.manifest())));
    }

    fn finish(mut self) -> Plan {
        self.plan.status = self.status.into_value();
        if self.plan.done_status.is_null() {
            self.plan.done_status = self.plan.status.clone();
        }
        self.plan
    }
}

/// A time as releases and conditions have it.
pub(super) fn shown(time: Timestamp) -> String {
    let seconds = Timestamp::from_second(time.as_second()).unwrap_or(time);
    seconds.to_string()
}
