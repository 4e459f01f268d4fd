//! A run as the API server's hooks see it: what happened is noted, and the faults of a plan are
//! carried out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use windlass::testing::Activity;
use windlass_apiserver::hooks::{Outcome, Watch, WatchEvent};
use windlass_apiserver::http::{ResourceRequest, Verb};

use windlass_explore::names;
use windlass_explore::plan::{Act, Fault, Plan, Point};

use super::points::Entry;
use crate::testing::outside::{Fate, OutsideCall};

/// How long an event is held.
const HELD: Duration = Duration::from_mins(1);

/// What becomes of a request.
pub(crate) enum Step {
    /// It goes on.
    Pass,
    /// It is refused with this code.
    Refuse(u16),
    /// Its answer is lost.
    Lose,
    /// Whoever sent it is killed.
    Kill,
}

/// How long a pause is that stands in for a fault.
const PAUSE: Duration = Duration::from_secs(1);

/// Follows one run.
pub(crate) struct Script {
    /// The operators' users, with their names.
    operators: BTreeMap<String, String>,
    activity: Activity,
    state: Mutex<State>,
    /// Notified when an operator is about to write.
    writes: Notify,
    /// Notified when a watch is to end.
    expires: Notify,
}

#[derive(Default)]
struct State {
    /// How often each thing has happened: the side of the server, the operator, what it was.
    counts: HashMap<(Side, String, String), usize>,
    trace: Vec<Entry>,
    pending: Vec<Fault>,
    /// Watches that are to end with 410.
    expired: BTreeSet<u64>,
    /// All requests and events of the operators wait until then.
    paused_until: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Attempt,
    Answered,
    Applied,
    Event,
    Outside,
}

impl Script {
    pub(super) fn new(
        operators: BTreeMap<String, String>,
        activity: Activity,
        plan: &Plan,
    ) -> Self {
        let state = State {
            pending: plan.0.clone(),
            ..State::default()
        };
        Self {
            operators,
            activity,
            state: Mutex::new(state),
            writes: Notify::new(),
            expires: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has happened so far.
    pub(super) fn trace(&self) -> Vec<Entry> {
        self.lock().trace.clone()
    }

    /// The faults whose point the run has not come to.
    pub(super) fn not_reached(&self) -> Vec<Fault> {
        self.lock().pending.clone()
    }

    /// Whether a user is one of the operators.
    pub(crate) fn follows(&self, user: &str) -> bool {
        self.operators.contains_key(user)
    }

    /// Waits until the operators go on, if this is one of them and they are paused: all of them are, so
    /// that nothing is lost or overtaken.
    pub(crate) async fn pause(&self, user: &str) {
        let until = self.lock().paused_until;
        if let Some(until) = until.filter(|_| self.follows(user)) {
            let _due = self.activity.due(until, "a pause");
            tokio::time::sleep_until(until).await;
        }
    }

    /// Before a request is applied.
    pub(crate) fn before(&self, user: &str, request: &ResourceRequest) -> Step {
        let Some(operator) = self.writer(user, request) else {
            return Step::Pass;
        };
        self.writes.notify_waiters();
        let mut state = self.lock();
        let at = state.point(Side::Attempt, operator, names::request(request));
        let act = state.take(&at, |act| matches!(act, Act::Refuse(_) | Act::Pause));
        state.trace.push(Entry::Attempt(at));
        match act {
            Some(Act::Refuse(code)) => Step::Refuse(code),
            Some(Act::Pause) => state.pause(),
            _ => Step::Pass,
        }
    }

    /// After a request was applied.
    pub(crate) fn after(&self, user: &str, request: &ResourceRequest, outcome: &Outcome) -> Step {
        let Some(operator) = self.writer(user, request).filter(|_| outcome.wrote) else {
            return Step::Pass;
        };
        let mut state = self.lock();
        let attempt = state.point(Side::Answered, operator, names::request(request));
        let at = state.point(Side::Applied, operator, names::request(request));
        let act = state.take(&at, |act| {
            matches!(act, Act::Kill | Act::LoseAnswer | Act::Pause)
        });
        let changed = !outcome.changes.is_empty();
        let names_version = outcome.guarded && matches!(request.verb, Verb::Update | Verb::Patch);
        state.trace.push(Entry::Applied {
            at,
            changed,
            conflicts: names_version.then_some(attempt),
        });
        match act {
            Some(Act::Pause) => state.pause(),
            Some(Act::Kill) => Step::Kill,
            Some(Act::LoseAnswer) => Step::Lose,
            _ => Step::Pass,
        }
    }

    /// An operator calls a system outside of the cluster.
    pub(crate) fn outside(&self, call: &OutsideCall) -> Fate {
        let mut state = self.lock();
        let what = format!("call {}", call.what);
        let at = state.point(Side::Outside, &call.operator, what);
        let act = state.take(&at, |act| {
            matches!(
                act,
                Act::Kill | Act::LoseAnswer | Act::LoseCall | Act::Pause
            )
        });
        let changes = call.changes;
        state.trace.push(Entry::Outside { at, changes });
        match act {
            Some(Act::Kill) => Fate::CallerKilled,
            Some(Act::LoseAnswer) => Fate::AnswerLost,
            Some(Act::LoseCall) => Fate::CallLost,
            _ => Fate::Answered,
        }
    }

    /// Ends when a watch is to end with 410.
    pub(crate) async fn expires(&self, watch: &Watch) {
        loop {
            let expires = self.expires.notified();
            tokio::pin!(expires);
            expires.as_mut().enable();
            if self.lock().expired.contains(&watch.id) {
                return;
            }
            expires.await;
        }
    }

    /// Before an event is sent: holds it if the plan says so.
    pub(crate) async fn deliver(&self, watch: &Watch, event: &WatchEvent<'_>) {
        let Some(operator) = self.operators.get(&watch.who.user) else {
            return;
        };
        let act = {
            let mut state = self.lock();
            let at = state.point(Side::Event, operator, names::event(watch, event));
            let act = state.take(&at, |act| {
                matches!(
                    act,
                    Act::Hold | Act::HoldUntilWrite | Act::Skip | Act::Pause
                )
            });
            state.trace.push(Entry::Event(at));
            if act == Some(Act::Pause) {
                state.pause();
            }
            act.filter(|act| *act != Act::Pause)
        };
        self.pause(&watch.who.user).await;
        let Some(act) = act else {
            return;
        };
        // A cluster is not settled while an event is on its way.
        let due = self
            .activity
            .due(Instant::now() + HELD, "an event that is held");
        match act {
            Act::HoldUntilWrite => drop(timeout(HELD, self.writes.notified()).await),
            _ => tokio::time::sleep(HELD).await,
        }
        if act == Act::Skip {
            self.lock().expired.insert(watch.id);
            self.expires.notify_waiters();
            drop(due);
            // Its client lists what there is, and never sees this.
            std::future::pending::<()>().await;
        }
    }

    fn writer(&self, user: &str, request: &ResourceRequest) -> Option<&str> {
        let operator = self.operators.get(user).filter(|_| request.verb.writes());
        operator.map(String::as_str)
    }
}

impl State {
    fn pause(&mut self) -> Step {
        self.paused_until = Some(Instant::now() + PAUSE);
        Step::Pass
    }

    /// The point that a run has come to.
    fn point(&mut self, side: Side, operator: &str, what: String) -> Point {
        let count = self
            .counts
            .entry((side, operator.to_owned(), what.clone()))
            .or_default();
        *count += 1;
        Point {
            operator: operator.to_owned(),
            what,
            nth: *count,
        }
    }

    /// The fault that is planned for this point, which then is no longer pending.
    fn take(&mut self, at: &Point, is_of_side: impl Fn(Act) -> bool) -> Option<Act> {
        let mut pending = self.pending.iter();
        let found = pending.position(|fault| fault.at == *at && is_of_side(fault.act))?;
        Some(self.pending.remove(found).act)
    }
}
