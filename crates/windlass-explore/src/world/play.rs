//! A scenario is played from its first step to its last, and compared after each.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use windlass_apiserver::http::TlsConfig;

use super::ground::Ground;
use super::settle::Goal;
use super::{Base, Expected, Run, Take, Unusable, World, machine};
use crate::edge::Edge;
use crate::judge::{Wrong, holds_data};
use crate::plan::Act;
use crate::process::Ports;
use crate::state::{Difference, State, changed_fields};
use crate::subject::Subject;
use crate::trace::{Happened, Record};

/// Of what is known already, this part of the patience is enough.
const KNOWN: u32 = 4;

impl Base {
    /// Plays a scenario.
    pub(crate) async fn play(&self, subject: &Subject, take: &Take<'_>) -> Result<Run, Unusable> {
        let began = std::time::Instant::now();
        let edge = Arc::new(Edge::new(
            take.plan,
            take.steps.len(),
            self.pace.pause,
            self.invariants.clone(),
        ));
        let ground = Ground::begin(
            Some(&self.snapshot),
            Some(edge.clone()),
            take.seed,
            self.pace,
            self.pods,
        );
        ground.rest(self.pace).await;
        let cannot = machine("serve on loopback");
        let serving = if subject.is_process() {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await;
            let listener = listener.map_err(|error| cannot(&error))?;
            let tls = TlsConfig {
                serving: self.serving.clone(),
                client_ca: self.authority.pem().certificate.clone(),
            };
            let serving = ground.server.serve(listener, &tls);
            Some(serving.map_err(|error| cannot(&error))?)
        } else {
            None
        };
        let cannot = machine("make a folder");
        let mut world = World {
            base: self,
            ground,
            edge,
            subject,
            life: None,
            former: None,
            serving,
            folder: tempfile::tempdir().map_err(|error| cannot(&error))?,
            ports: Ports::default(),
            quiet: take.quiet,
            ends: 0,
            again: None,
            is_up: true,
            longest_gap: Duration::ZERO,
        };
        let mut run = Run::default();
        let played = world.play(take, &mut run).await;
        if let Some(mut life) = world.life.take() {
            life.kill().await;
        }
        if let Some(mut former) = world.former.take() {
            former.kill().await;
        }
        run.records = world.edge.records();
        run.deleted = world.edge.deleted();
        run.races = world.edge.races();
        let stale = take
            .plan
            .0
            .iter()
            .any(|fault| fault.act == Act::StaleRestart);
        run.complete =
            world.edge.not_reached().is_empty() && (!stale || world.edge.past_was_read());
        run.took = began.elapsed();
        run.longest_gap = world.longest_gap;
        run.elects = world.edge.elects();
        run.reads_any_version = world.edge.reads_any_version();
        if let Some(serving) = world.serving.take() {
            serving.stop().await;
        }
        played.map(|()| run)
    }
}

impl Take<'_> {
    /// What a step is to come to, of those that others follow: after the last one it is waited longer.
    fn goal(&self, step: usize) -> Goal<'_> {
        let expected = self.goal.filter(|_| step < self.steps.len())?;
        let state = expected.states.get(step)?.as_ref()?;
        Some((state, &expected.mask, self.ignore))
    }
}

impl World<'_> {
    async fn play(&mut self, take: &Take<'_>, run: &mut Run) -> Result<(), Unusable> {
        for number in 0..=take.steps.len() {
            let step = number
                .checked_sub(1)
                .and_then(|index| take.steps.get(index));
            let what = step.map_or("the operator starts".to_owned(), ToString::to_string);
            let act = self.edge.begin_step(number, what);
            if act == Some(Act::Down) {
                self.kill().await;
                self.is_up = false;
            }
            match step {
                None => self.start()?,
                Some(step) => self.step(step, act).await?,
            }
            let goal = take.goal(number);
            let mut settled = self.settle(goal).await?;
            if act == Some(Act::Down) && settled.is_none() {
                self.start()?;
                self.is_up = true;
                settled = self.settle(goal).await?;
            }
            let mut writes_at_rest = None;
            if act == Some(Act::Restart) && settled.is_none() {
                let before = self.edge.records().len();
                self.kill().await;
                self.start()?;
                settled = self.settle(None).await?;
                let records = self.edge.records();
                writes_at_rest = take
                    .expected
                    .and_then(|expected| writes(&records[before..], expected));
            }
            if let Some(wrong) = settled.or_else(|| self.broken_now()) {
                run.wrong = Some((number, wrong));
                return Ok(());
            }
            let is_holding = self.edge.is_holding();
            let state = self.edge.state(take.ignore);
            run.states.push((!is_holding).then(|| state.clone()));
            let Some(expected) = take.expected.filter(|_| !is_holding) else {
                continue;
            };
            let reference = expected.states.get(number).and_then(Option::as_ref);
            if let Some(lost) = self.lost(expected, reference) {
                run.wrong = Some((number, Wrong::Deleted(lost)));
                return Ok(());
            }
            if let Some(reference) = reference {
                let differences = self.differences(take, expected, reference).await?;
                if !differences.is_empty() {
                    run.wrong = Some((number, Wrong::of(differences)));
                    return Ok(());
                }
            }
            if let Some(what) = writes_at_rest {
                run.wrong = Some((number, Wrong::WritesAtRest(what)));
                return Ok(());
            }
        }
        Ok(())
    }

    /// What differs for good.
    async fn differences(
        &mut self,
        take: &Take<'_>,
        expected: &Expected,
        reference: &State,
    ) -> Result<Vec<Difference>, Unusable> {
        let began = Instant::now();
        loop {
            let state = self.edge.state(take.ignore);
            let differences = reference.differences(&state, &expected.mask);
            let waited = began.elapsed();
            let is_known = || {
                let wrong = Wrong::of(differences.clone());
                take.known.iter().any(|known| known.is_like(&wrong))
            };
            if differences.is_empty()
                || waited > take.patience
                || (waited > take.patience / KNOWN && is_known())
            {
                return Ok(differences);
            }
            sleep(self.base.pace.tick * 4).await;
            self.tend().await?;
        }
    }

    /// An object of a precious kind that was deleted and should not have been.
    fn lost(&self, expected: &Expected, reference: Option<&State>) -> Option<String> {
        let reference = reference?;
        let deleted = self.edge.deleted().into_iter();
        let mut lost = deleted.filter(|(object, steps)| {
            let is_lost = match expected.deleted.get(object) {
                None => true,
                // What is deleted in another step, too, is lost when it was made for this one.
                Some(usual) => {
                    let is_new =
                        |(made, gone): &(usize, usize)| made == gone && !usual.contains(gone);
                    holds_data(object) && !object.contains('*') && steps.iter().any(is_new)
                }
            };
            is_lost && reference.0.contains_key(object) && !expected.mask.objects.contains(object)
        });
        lost.next().map(|(object, _)| object)
    }

    fn broken_now(&self) -> Option<Wrong> {
        if let Some((name, when)) = self.edge.broken() {
            return Some(Wrong::Broken(name, when));
        }
        let objects = self.edge.objects();
        let mut finally = self.base.finally.iter();
        finally.find_map(|rule| {
            let why = rule.broken(&objects)?;
            Some(Wrong::Broken(
                rule.name.clone(),
                format!("once everything has settled, {why}"),
            ))
        })
    }
}

/// What a restart at rest has changed.
fn writes(records: &[Record], expected: &Expected) -> Option<String> {
    let changed = records.iter().filter_map(|record| {
        let Happened::Write {
            request, changes, ..
        } = &record.happened
        else {
            return None;
        };
        if expected.at_start.contains(request) {
            return None;
        }
        let change = changes.iter().find(|change| {
            let parse =
                |bytes: &bytes::Bytes| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
            match &change.before {
                None => true,
                Some(_) if change.kind == windlass_apiserver::hooks::EventKind::Deleted => true,
                Some(before) => {
                    let fields = changed_fields(&parse(before), &parse(&change.after));
                    fields.iter().any(|field| {
                        !is_fleeting(field) && !is_masked(expected, &change.object, field)
                    })
                }
            }
        })?;
        Some(format!("{request}: {}", change.object))
    });
    let changed: Vec<String> = changed.take(5).collect();
    (!changed.is_empty()).then(|| changed.join("\n"))
}

fn is_masked(expected: &Expected, object: &str, field: &str) -> bool {
    expected.mask.objects.contains(object)
        || expected
            .mask
            .fields
            .contains(&(object.to_owned(), field.to_owned()))
}

/// Whether a field says when something was done, and no more.
pub(crate) fn is_fleeting(field: &str) -> bool {
    let last = field.rsplit(['.', '[']).next().unwrap_or(field);
    let last = last.trim_end_matches(']');
    ["Time", "Timestamp", "At", "-time"]
        .iter()
        .any(|end| last.ends_with(end))
}
