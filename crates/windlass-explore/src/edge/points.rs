//! The points of a run: requests and events are recorded, and the faults planned for them begin.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use tokio::time::Instant;
use windlass_apiserver::Identity;
use windlass_apiserver::hooks::{EventKind, Outcome, Verdict, Watch, WatchEvent};
use windlass_apiserver::http::{ResourceRequest, Verb};

use super::{Held, Inner, OPERATOR, Side, user};
use crate::names;
use crate::plan::{Act, Point};
use crate::state;
use crate::trace::{Change, Happened};
use crate::triggers::is_telling;

/// How many changed fields a point names.
const FIELDS: usize = 3;
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
        self.writes_held = if self.held.is_empty() && self.past.is_none() {
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
        let act = self.take(&at, |act| matches!(act, Act::Refuse(_) | Act::Pause));
        self.record(Happened::Attempt(at));
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
                self.deleted.push((self.step, object));
            }
        }
        let mut what = names::steady_request(request);
        let fields = fields_of(outcome);
        if !fields.is_empty() {
            what = format!("{what} ({fields})");
        }
        let at = self.point(Side::Applied, what);
        let act = outcome.wrote.then(|| {
            self.take(&at, |act| {
                matches!(act, Act::Kill | Act::LoseAnswer | Act::Pause)
            })
        });
        let unseen = self.detector.unseen(OPERATOR);
        self.record(Happened::Write {
            at,
            request: names::request(request),
            code: outcome.code.as_u16(),
            changes,
            unseen,
        });
        let act = act.flatten();
        if let Some(act) = act {
            let name = match act {
                Act::Kill => "killed",
                Act::LoseAnswer => "the answer is lost",
                _ => "paused",
            };
            self.record(Happened::Fault(name.to_owned()));
        }
        act
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
                    expires: matches!(act, Act::Skip | Act::SkipOverStep),
                };
                self.held.insert(watch.id, held);
            }
        }
        self.record(Happened::Fault(format!("{} this event", act.title())));
    }
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
