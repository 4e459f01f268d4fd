//! The points of a run: requests and events are recorded, and the faults planned for them begin.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use tokio::time::Instant;
use windlass_apiserver::Identity;
use windlass_apiserver::hooks::{EventKind, Outcome, Verdict, Watch, WatchEvent, Written};
use windlass_apiserver::http::{ResourceRequest, Verb};

use super::{Held, Inner, OPERATOR, Overtaken, Side, user};
use crate::names;
use crate::plan::{Act, Point};
use crate::state;
use crate::trace::{Change, Happened};
use crate::triggers::is_telling;

/// How many changed fields a point names.
const FIELDS: usize = 3;
/// How late a watch is at most, when it is late for long.
const LONG: Duration = Duration::from_mins(10);
/// After so many writes a watch that is held goes on.
const CIRCLES: usize = 60;

impl Inner {
    /// The operator asks for something.
    pub(super) fn asked(&mut self, request: &ResourceRequest) -> Verdict {
        let resource = names::resource_of(request);
        let namespace = request.namespace.as_deref().unwrap_or_default();
        let name = request.name.as_deref().unwrap_or_default();
        if self.is_ceaseless(&resource, namespace, name) {
            return Verdict::Pass;
        }
        self.has_spoken = true;
        let key = names::request(request);
        if self.asked.insert(key.clone()) {
            self.work();
            self.open += usize::from(request.verb != Verb::Watch);
        } else if request.verb != Verb::Watch {
            *self.repeated.entry(key.clone()).or_default() += 1;
        }
        if !request.verb.writes() {
            return Verdict::Pass;
        }
        // No watch is late for ever: one that goes round in circles meanwhile is not to be blamed.
        self.writes_held = if self.held.is_empty() && self.answers.is_empty() && self.past.is_none()
        {
            0
        } else {
            self.writes_held + 1
        };
        if self.writes_held > CIRCLES {
            self.let_go("the operator goes on writing");
        }
        // A watch that waits for this goes on.
        let waiting: Vec<u64> = self
            .held
            .iter()
            .filter(|(_, held)| held.until_write)
            .map(|(id, _)| *id)
            .collect();
        for id in waiting {
            self.held.remove(&id);
            self.record(Happened::Fault(
                "the operator writes: the watch that was held goes on".to_owned(),
            ));
        }
        let at = self.point(Side::Attempt, names::steady_request(request));
        let act = self.take(&at, |act| {
            matches!(act, Act::Refuse(_) | Act::Overtake | Act::Pause)
        });
        self.record(Happened::Attempt(at));
        if act == Some(Act::Overtake) {
            self.overtaken = Some(Overtaken {
                life: self.life,
                after_step: (self.step + 1).min(self.last_step),
                arrives: false,
            });
            // Nothing else that it asks for gets any further.
            self.is_dead = true;
            self.is_to_be_replaced = true;
            self.record(Happened::Fault(
                "the leader stops, and its lease runs out".to_owned(),
            ));
        }
        if act == Some(Act::Pause) {
            self.paused_until = Some(Instant::now() + self.pause);
        }
        let Some(Act::Refuse(code)) = act else {
            return Verdict::Pass;
        };
        self.open = self.open.saturating_sub(1);
        self.record(Happened::Fault(format!("refused with {code}")));
        let message = match code {
            403 => "exceeded quota: explorer",
            409 => {
                "the object has been modified; please apply your changes to the latest version and try again"
            }
            _ => "refused by the explorer",
        };
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Verdict::Fail(code, message.to_owned())
    }

    /// A request was carried out.
    pub(super) fn answered(
        &mut self,
        who: &Identity,
        request: &ResourceRequest,
        outcome: &Outcome,
    ) -> Option<Act> {
        let resource = names::resource_of(request);
        let namespace = request.namespace.as_deref().unwrap_or_default();
        let name = request.name.as_deref().unwrap_or_default();
        let was_counted = !self.is_ceaseless(&resource, namespace, name);
        for change in &outcome.changes {
            self.note(change);
            let is_new = change.kind() == EventKind::Added;
            if is_new && crate::judge::is_precious(change.resource()) {
                self.made.insert(uid_of(change), self.step);
            }
        }
        let is_ours = Self::is_operator(&who.user);
        let is_lock = |change: &windlass_apiserver::hooks::Written| {
            self.is_ceaseless(change.resource(), change.namespace(), change.name())
        };
        let ceaseless = self.is_ceaseless(&resource, namespace, name)
            || (!outcome.changes.is_empty() && outcome.changes.iter().all(is_lock));
        self.detector.wrote(OPERATOR, outcome, is_ours);
        if !is_ours {
            if !outcome.changes.is_empty() && !ceaseless {
                let changes: Vec<Change> = outcome.changes.iter().map(Change::of).collect();
                if changes.iter().any(is_telling) {
                    self.changed();
                }
                let user = who.user.clone();
                self.record(Happened::Other { user, changes });
            }
            return None;
        }
        if self.is_overtaken(&who.user) {
            self.overtaken = None;
            let changes: Vec<Change> = outcome.changes.iter().map(Change::of).collect();
            if changes.iter().any(is_telling) {
                self.changed();
            }
            let what = names::request(request);
            let code = outcome.code.as_u16();
            self.record(Happened::Fault(format!(
                "{what} of the former leader arrives ({code})"
            )));
            return Some(Act::LoseAnswer);
        }
        if who.user != user(self.life) {
            return None;
        }
        if was_counted && request.verb != Verb::Watch {
            self.closed(&names::request(request));
        }
        if ceaseless {
            return None;
        }
        let changes: Vec<Change> = outcome.changes.iter().map(Change::of).collect();
        if changes.iter().any(is_telling) {
            self.changed();
        }
        if !request.verb.writes() {
            if outcome.code.is_success() && matches!(request.verb, Verb::Get | Verb::List) {
                let table = resource.split('/').next().unwrap_or_default();
                self.detector.read(OPERATOR, table, namespace, name);
            }
            return None;
        }
        for change in &outcome.changes {
            let deletes = matches!(request.verb, Verb::Delete | Verb::DeleteCollection);
            if deletes && crate::judge::is_precious(change.resource()) {
                let object = names::object(
                    change.resource(),
                    change.namespace(),
                    &names::steady(change.name()),
                );
                let made = self.made.get(&uid_of(change)).copied().unwrap_or_default();
                let steps = (made, self.step);
                self.deleted.entry(object).or_default().insert(steps);
            }
        }
        let mut what = names::steady_request(request);
        let fields = fields_of(outcome);
        if !fields.is_empty() {
            what = format!("{what} ({fields})");
        }
        let attempt = self.point(Side::Answered, names::steady_request(request));
        let at = self.point(Side::Applied, what);
        let act = outcome.wrote.then(|| {
            self.take(&at, |act| {
                matches!(
                    act,
                    Act::Kill
                        | Act::KillOverStep
                        | Act::LoseAnswer
                        | Act::HoldAnswer
                        | Act::HoldAnswerOverStep
                        | Act::ServerRestart
                        | Act::Pause
                )
            })
        });
        let unseen = self.detector.unseen(OPERATOR);
        // Only a write that names a version can be in conflict, and only with what was there.
        let conflicts =
            outcome.guarded && outcome.wrote && matches!(request.verb, Verb::Update | Verb::Patch);
        self.record(Happened::Write {
            at,
            request: names::request(request),
            code: outcome.code.as_u16(),
            changes,
            unseen,
            conflicts: conflicts.then_some(attempt),
        });
        let act = act.flatten();
        if let Some(act) = act {
            let name = match act {
                Act::Kill => "killed",
                Act::KillOverStep => {
                    "killed, and not started again before the next step has settled"
                }
                Act::LoseAnswer => "the answer is lost",
                Act::HoldAnswer | Act::HoldAnswerOverStep => "the answer is held",
                Act::ServerRestart => "the API server restarts: every connection is reset",
                _ => "paused",
            };
            self.record(Happened::Fault(name.to_owned()));
        }
        act
    }

    /// Holds the answer to a write, if that is its fault; answers its number.
    pub(super) fn hold_answer(&mut self, act: Option<Act>) -> Option<u64> {
        let over = match act? {
            Act::HoldAnswer => 0,
            Act::HoldAnswerOverStep => 1,
            _ => return None,
        };
        let number = self.records.len() as u64;
        self.answers.insert(number, self.step + over);
        Some(number)
    }

    /// An event is on its way to the operator.
    pub(super) fn about_to_deliver(
        &mut self,
        watch: &Watch,
        event: &WatchEvent<'_>,
        resource: &str,
    ) {
        if self.is_ceaseless(resource, event.namespace, event.name)
            || watch.who.user != user(self.life)
        {
            return;
        }
        self.work();
        let what = names::steady_event(watch, event);
        let watched = names::watched(watch);
        let until = self.late.get(&watched).copied();
        if let Some(until) = until.filter(|until| *until > Instant::now() && !event.initial) {
            let held = Held {
                until_write: false,
                after_step: self.step,
                until: Some(until),
                expires: false,
            };
            self.held.entry(watch.id).or_insert(held);
        }
        let at = if event.initial {
            // Not a point: what a watch begins with comes as a whole.
            Point {
                operator: OPERATOR.to_owned(),
                what,
                nth: 0,
            }
        } else {
            self.point(Side::Event, what)
        };
        let act = self.take(&at, |act| {
            matches!(
                act,
                Act::HoldUntilWrite
                    | Act::Hold
                    | Act::HoldOverStep
                    | Act::HoldLong
                    | Act::Skip
                    | Act::SkipOverStep
                    | Act::StaleRestart
                    | Act::Pause
            )
        });
        self.record(Happened::Event {
            at,
            revision: event.revision,
            object: names::object(resource, event.namespace, event.name),
            initial: event.initial,
        });
        let Some(act) = act else {
            return;
        };
        match act {
            Act::Pause => self.paused_until = Some(Instant::now() + self.pause),
            Act::StaleRestart => {
                // What has happened since is what a list of the past does not show.
                let after = (self.step + 1).min(self.last_step);
                self.restart_before = Some((event.revision.saturating_sub(1), after));
            }
            _ => {
                let over = matches!(act, Act::HoldOverStep | Act::SkipOverStep);
                let held = Held {
                    until_write: act == Act::HoldUntilWrite,
                    after_step: self.step + usize::from(over),
                    until: (act == Act::HoldLong).then(|| Instant::now() + LONG),
                    expires: matches!(act, Act::Skip | Act::SkipOverStep),
                };
                if let Some(until) = held.until {
                    self.late.insert(watched, until);
                }
                self.held.insert(watch.id, held);
            }
        }
        self.record(Happened::Fault(format!("{} this event", act.title())));
    }
}

fn uid_of(change: &Written) -> String {
    let object: Value = serde_json::from_slice(change.after()).unwrap_or_default();
    object["metadata"]["uid"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// What the changes of a write were, for the name of its point: `spec.replicas, status`.
fn fields_of(outcome: &Outcome) -> String {
    let mut fields: Vec<String> = Vec::new();
    for change in &outcome.changes {
        let Some(before) = change.before() else {
            continue;
        };
        let parse = |bytes: &Bytes| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
        if change.kind() == EventKind::Deleted {
            continue;
        }
        for field in state::changed_fields(&parse(before), &parse(change.after())) {
            let short: String = field
                .split(['.', '['])
                .take(2)
                .collect::<Vec<_>>()
                .join(".");
            if !fields.contains(&short) {
                fields.push(short);
            }
        }
    }
    fields.truncate(FIELDS);
    fields.join(", ")
}
