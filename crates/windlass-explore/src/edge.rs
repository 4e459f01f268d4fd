//! The edge of the API server in one run: what happens is recorded, and the faults of a plan are
//! carried out.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use windlass_apiserver::Identity;
use windlass_apiserver::hooks::{
    EventKind, HookFuture, Hooks, Outcome, Reply, StaleRead, Verdict, Watch, WatchEnd, WatchEvent,
};
use windlass_apiserver::http::{ResourceRequest, Verb};

use crate::invariant::Invariant;
use crate::names;
use crate::plan::{Act, Fault, Plan, Point};
use crate::race::Detector;
use crate::state::{self, Object, State};
use crate::trace::{Change, Happened, Record};
use crate::triggers::is_telling;

/// How the users begin that the operator is, one for each of its lives.
const USER: &str = "explored-operator-";
/// What it is called in plans.
pub(crate) const OPERATOR: &str = "operator";
/// What leader election writes into objects that are not Leases.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// How many changed fields a point names.
const FIELDS: usize = 3;
/// After so many writes a watch that is held goes on.
const CIRCLES: usize = 60;
/// A request that is open for so long while nothing else happens was given up by its client.
const GIVEN_UP: Duration = Duration::from_secs(5);
/// Resources whose writes are no work: they go on for ever.
const UNSETTLED: &[&str] = &[
    "leases.coordination.k8s.io",
    "events",
    "events.events.k8s.io",
];

/// Who the operator is in this life.
pub(crate) fn user(life: usize) -> String {
    format!("{USER}{life}")
}

/// What records a run and disturbs it.
pub(crate) struct Edge {
    state: Mutex<Inner>,
    /// Notified when something is no longer held.
    released: Notify,
    /// What must hold after every change.
    invariants: Vec<Invariant>,
}

/// Why a watch is held.
#[derive(Clone, Copy)]
struct Held {
    /// Until the operator writes, too.
    until_write: bool,
    /// Until the step after this one has settled.
    after_step: usize,
    /// Whether it expires then.
    expires: bool,
}

/// An object that was changed since the run began.
struct Tracked {
    resource: String,
    /// Before the run.
    first: Option<Bytes>,
    now: Option<Bytes>,
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact about the run"
)]
struct Inner {
    began: Instant,
    step: usize,
    life: usize,
    is_dead: bool,
    records: Vec<Record>,
    counts: HashMap<(Side, String), usize>,
    pending: Vec<Fault>,
    held: BTreeMap<u64, Held>,
    /// How often the operator has written while one is.
    writes_held: usize,
    /// Watches of the operator that are to end with 410.
    expired: HashSet<u64>,
    /// Everything for the operator waits until then.
    paused_until: Option<Instant>,
    /// The revision as of which lists of any version are answered.
    past: Option<u64>,
    /// Whether one was.
    past_was_read: bool,
    /// A restart that is planned for when a step has settled, and the revision that it goes back to.
    restart_before: Option<(u64, usize)>,
    /// The last step of the scenario.
    last_step: usize,
    objects: BTreeMap<(String, String, String), Tracked>,
    /// Names of objects by which replicas elect their leader.
    locks: HashSet<(String, String, String)>,
    /// Requests under way that are work.
    open: usize,
    /// Requests under way that repeat what changed nothing, by what they ask for.
    repeated: HashMap<String, usize>,
    /// What was asked for since something last changed: asked for again, it is no work.
    asked: HashSet<String>,
    active: Instant,
    /// Objects of precious kinds that the operator deleted.
    deleted: Vec<(usize, String)>,
    detector: Detector,
    is_to_be_killed: bool,
    has_spoken: bool,
    reads_any_version: bool,
    broken: Option<(String, String)>,
    longest_gap: Duration,
    /// How long a pause lasts.
    pause: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Attempt,
    Applied,
    Event,
    Step,
}

impl Edge {
    pub(crate) fn new(
        plan: &Plan,
        last_step: usize,
        pause: Duration,
        invariants: Vec<Invariant>,
    ) -> Self {
        let now = Instant::now();
        let inner = Inner {
            began: now,
            step: 0,
            life: 0,
            is_dead: true,
            records: Vec::new(),
            counts: HashMap::new(),
            pending: plan.0.clone(),
            held: BTreeMap::new(),
            writes_held: 0,
            expired: HashSet::new(),
            paused_until: None,
            past: None,
            past_was_read: false,
            restart_before: None,
            last_step,
            objects: BTreeMap::new(),
            locks: HashSet::new(),
            open: 0,
            repeated: HashMap::new(),
            asked: HashSet::new(),
            active: now,
            deleted: Vec::new(),
            detector: Detector::default(),
            is_to_be_killed: false,
            has_spoken: false,
            reads_any_version: false,
            broken: None,
            longest_gap: Duration::ZERO,
            pause,
        };
        Self {
            state: Mutex::new(inner),
            released: Notify::new(),
            invariants,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step of the scenario begins. Answers what the plan does to the operator meanwhile.
    pub(crate) fn begin_step(&self, step: usize, what: String) -> Option<Act> {
        let mut inner = self.lock();
        inner.step = step;
        inner.active = Instant::now();
        inner.record(Happened::Step(what));
        let at = inner.point(Side::Step, format!("step {step}"));
        let act = inner.take(&at, |act| matches!(act, Act::Down | Act::Restart));
        if let Some(act) = act {
            inner.record(Happened::Fault(format!("{} step {step}", act.title())));
        }
        act
    }

    /// The operator begins another life; answers its number.
    pub(crate) fn born(&self) -> usize {
        let mut inner = self.lock();
        inner.life += 1;
        inner.is_dead = false;
        inner.has_spoken = false;
        inner.is_to_be_killed = false;
        inner.active = Instant::now();
        inner.open = 0;
        inner.repeated.clear();
        inner.asked.clear();
        inner.record(Happened::Started);
        inner.life
    }

    /// The operator has ended, or is about to be killed: none of its requests gets any further.
    pub(crate) fn died(&self, why: Option<String>) {
        let mut inner = self.lock();
        inner.is_dead = true;
        inner.held.clear();
        inner.active = Instant::now();
        if let Some(why) = why {
            inner.record(Happened::Ended(why));
        }
        drop(inner);
        self.released.notify_waiters();
    }

    /// Whether the plan kills the operator now.
    pub(crate) fn is_to_be_killed(&self) -> bool {
        std::mem::take(&mut self.lock().is_to_be_killed)
    }

    /// Whether the operator has asked for anything in this life.
    pub(crate) fn has_spoken(&self) -> bool {
        self.lock().has_spoken
    }

    /// Whether the operator asked for a list of any version, which a server that is behind may answer.
    pub(crate) fn reads_any_version(&self) -> bool {
        self.lock().reads_any_version
    }

    /// What must always hold and did not, and when.
    pub(crate) fn broken(&self) -> Option<(String, String)> {
        self.lock().broken.clone()
    }

    /// The longest time between two things that happened within a step, so far.
    pub(crate) fn longest_gap(&self) -> Duration {
        self.lock().longest_gap
    }

    /// The objects by which replicas elect a leader: resource, namespace, name.
    pub(crate) fn locks(&self) -> Vec<(String, String, String)> {
        let mut locks: Vec<_> = self.lock().locks.iter().cloned().collect();
        locks.sort();
        locks
    }

    /// How long nothing has happened that is work, if no request is open.
    pub(crate) fn still_for(&self) -> Option<Duration> {
        let inner = self.lock();
        let still = inner.active.elapsed();
        (inner.open == 0 || still > GIVEN_UP).then_some(still)
    }

    /// Everything has settled: answers whether something was let go, so that it has not yet.
    pub(crate) fn settled(&self) -> Option<Released> {
        let mut inner = self.lock();
        let step = inner.step;
        let due: Vec<u64> = inner
            .held
            .iter()
            .filter(|(_, held)| held.after_step <= step)
            .map(|(id, _)| *id)
            .collect();
        let mut released = None;
        for id in due {
            if let Some(held) = inner.held.remove(&id) {
                if held.expires {
                    inner.expired.insert(id);
                }
                let how = if held.expires { "expires" } else { "goes on" };
                inner.record(Happened::Fault(format!("the watch that was held {how}")));
                released = Some(Released::Watch);
            }
        }
        if released.is_none() && inner.past.is_some() {
            inner.past = None;
            inner.record(Happened::Fault("the server has caught up".to_owned()));
            released = Some(Released::Watch);
        }
        if released.is_none()
            && let Some((revision, _)) = inner.restart_before.take_if(|(_, after)| *after <= step)
        {
            inner.past = Some(revision);
            released = Some(Released::Restart);
        }
        if released.is_some() {
            inner.active = Instant::now();
        } else {
            inner.record(Happened::Settled);
        }
        drop(inner);
        self.released.notify_waiters();
        released
    }

    /// Lets go of every watch that is held: the next step cannot be taken before.
    pub(crate) fn let_go(&self) {
        self.lock().let_go("the user waits for a deletion");
        self.released.notify_waiters();
    }

    /// Whether something is held over the present step: its end is not to be compared.
    pub(crate) fn is_holding(&self) -> bool {
        !self.lock().held.is_empty()
    }

    /// The faults whose point the run has not come to.
    pub(crate) fn not_reached(&self) -> Vec<Fault> {
        let inner = self.lock();
        inner.pending.clone()
    }

    /// Whether a list of the past was asked for.
    pub(crate) fn past_was_read(&self) -> bool {
        self.lock().past_was_read
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.lock().records.clone()
    }

    pub(crate) fn races(&self) -> Vec<crate::race::Race> {
        self.lock().detector.races()
    }

    /// Objects of precious kinds that the operator deleted, with the step in which it did.
    pub(crate) fn deleted(&self) -> Vec<(usize, String)> {
        self.lock().deleted.clone()
    }

    /// The objects that this run has made or changed, by resource.
    pub(crate) fn objects(&self) -> Vec<(String, Value)> {
        self.lock().parsed()
    }

    /// What this run has made of the cluster.
    pub(crate) fn state(&self, ignore: &[String]) -> State {
        let inner = self.lock();
        inner.state(ignore)
    }
}

/// What was let go once everything else had settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// A watch.
    Watch,
    /// The operator is to be restarted.
    Restart,
}

impl Inner {
    fn record(&mut self, happened: Happened) {
        self.records.push(Record {
            at: self.began.elapsed(),
            step: self.step,
            happened,
        });
    }

    fn point(&mut self, side: Side, what: String) -> Point {
        let count = self.counts.entry((side, what.clone())).or_default();
        *count += 1;
        Point {
            operator: OPERATOR.to_owned(),
            what,
            nth: *count,
        }
    }

    /// Something happened that is work.
    fn work(&mut self) {
        // Before it first speaks, an operator only starts.
        if self.has_spoken {
            self.longest_gap = self.longest_gap.max(self.active.elapsed());
        }
        self.active = Instant::now();
    }

    /// Lets go of every watch that is held, and of the past.
    fn let_go(&mut self, why: &str) {
        let held = std::mem::take(&mut self.held);
        let past = self.past.take();
        if held.is_empty() && past.is_none() {
            return;
        }
        let expired = held.iter().filter(|(_, held)| held.expires);
        self.expired.extend(expired.map(|(id, _)| *id));
        self.record(Happened::Fault(format!(
            "{why}: the watch that was held goes on"
        )));
    }

    /// A request has been answered.
    fn closed(&mut self, key: &str) {
        match self.repeated.get_mut(key) {
            Some(count) if *count > 0 => *count -= 1,
            _ => self.open = self.open.saturating_sub(1),
        }
    }

    /// Something has changed: whatever is asked for from now on is work again.
    fn changed(&mut self) {
        self.work();
        self.asked.clear();
    }

    /// What must always hold, and does not after this request.
    fn violation(
        &self,
        invariants: &[Invariant],
        request: &ResourceRequest,
    ) -> Option<(String, String)> {
        let objects = self.parsed();
        invariants.iter().find_map(|rule| {
            let why = rule.broken(&objects)?;
            Some((
                rule.name.clone(),
                format!("after {}, {why}", names::request(request)),
            ))
        })
    }

    /// The objects that this run has made or changed, by resource.
    fn parsed(&self) -> Vec<(String, Value)> {
        let objects = self.objects.values().filter_map(|tracked| {
            let value = serde_json::from_slice(tracked.now.as_ref()?).ok()?;
            Some((tracked.resource.clone(), value))
        });
        objects.collect()
    }

    /// The fault that is planned for this point, which then is no longer pending.
    fn take(&mut self, at: &Point, is_of_side: impl Fn(Act) -> bool) -> Option<Act> {
        let mut pending = self.pending.iter();
        let found = pending.position(|fault| fault.at == *at && is_of_side(fault.act))?;
        Some(self.pending.remove(found).act)
    }

    /// Whether this is the operator as it lives now, or lived.
    fn is_operator(user: &str) -> bool {
        user.starts_with(USER)
    }

    /// Whether requests and events of this kind are no work.
    fn is_ceaseless(&self, resource: &str, namespace: &str, name: &str) -> bool {
        UNSETTLED.contains(&resource)
            || (!name.is_empty()
                && self.locks.contains(&(
                    resource.to_owned(),
                    namespace.to_owned(),
                    name.to_owned(),
                )))
    }

    fn note(&mut self, change: &windlass_apiserver::hooks::Written) {
        let key = (
            change.resource().to_owned(),
            change.namespace().to_owned(),
            change.name().to_owned(),
        );
        let after = (change.kind() != EventKind::Deleted).then(|| change.after().clone());
        let is_lock = change.resource() == "leases.coordination.k8s.io"
            || (matches!(change.resource(), "configmaps" | "endpoints")
                && holds(change.after(), LEADER));
        if is_lock {
            self.locks.insert(key.clone());
        }
        let first = change.before().cloned();
        let tracked = self.objects.entry(key).or_insert_with(|| Tracked {
            resource: change.resource().to_owned(),
            first,
            now: None,
        });
        tracked.now = after;
    }

    fn state(&self, ignore: &[String]) -> State {
        let tracked = self.objects.iter();
        let tracked = tracked.filter(|((resource, namespace, name), tracked)| {
            // Revisions of templates are the notes of the cluster's own controllers.
            let is_note = resource == "controllerrevisions.apps";
            !is_note
                && !self.is_ceaseless(resource, namespace, name)
                && tracked.now != tracked.first
        });
        let objects = tracked.filter_map(|((resource, ..), tracked)| {
            let mut value: Value = serde_json::from_slice(tracked.now.as_ref()?).ok()?;
            let kind = value["kind"].as_str().unwrap_or_default().to_owned();
            let is_old = state::is_history(&kind, &value);
            // When a controller of the cluster adopts what is there is its own business.
            let owners = value.pointer_mut("/metadata/ownerReferences");
            if let Some(owners) = owners.and_then(Value::as_array_mut) {
                owners.retain(|owner| owner["apiVersion"] != "apps/v1");
            }
            (!is_old).then(|| Object {
                of: resource.clone(),
                kind,
                value,
            })
        });
        State::of(objects.collect(), ignore)
    }
}

/// Whether the JSON has this text in it: a cheap look before it is parsed.
fn holds(json: &Bytes, text: &str) -> bool {
    json.windows(text.len()).any(|part| part == text.as_bytes())
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

impl Hooks for Edge {
    fn before<'a>(
        &'a self,
        who: &'a Identity,
        request: &'a ResourceRequest,
    ) -> HookFuture<'a, Verdict> {
        Box::pin(async move {
            if !Inner::is_operator(&who.user) {
                return Verdict::Pass;
            }
            let verdict = {
                let mut inner = self.lock();
                if inner.is_dead || who.user != user(inner.life) {
                    None
                } else {
                    Some(inner.asked(request))
                }
            };
            let Some(verdict) = verdict else {
                // Sent before it died; no client waits for the answer.
                return std::future::pending().await;
            };
            self.released.notify_waiters();
            verdict
        })
    }

    fn after<'a>(
        &'a self,
        who: &'a Identity,
        request: &'a ResourceRequest,
        outcome: Outcome,
    ) -> HookFuture<'a, Reply> {
        let (act, paused) = {
            let mut inner = self.lock();
            let act = inner.answered(who, request, &outcome);
            if act == Some(Act::Pause) {
                inner.paused_until = Some(Instant::now() + inner.pause);
            }
            if act == Some(Act::Kill) {
                inner.is_dead = true;
                inner.is_to_be_killed = true;
            }
            if inner.broken.is_none() && !outcome.changes.is_empty() && !self.invariants.is_empty()
            {
                inner.broken = inner.violation(&self.invariants, request);
            }
            (act, inner.paused_until)
        };
        Box::pin(async move {
            if act == Some(Act::Kill) {
                return std::future::pending().await;
            }
            if let Some(until) = paused.filter(|_| Inner::is_operator(&who.user)) {
                sleep_until(until).await;
            }
            match act {
                Some(Act::LoseAnswer) => Reply::Lose,
                _ => Reply::Send,
            }
        })
    }

    fn deliver<'a>(&'a self, watch: &'a Watch, event: WatchEvent<'a>) -> HookFuture<'a, ()> {
        Box::pin(async move {
            if !Inner::is_operator(&watch.who.user) {
                return;
            }
            let resource = names::resource_of(&watch.request);
            let paused = {
                let mut inner = self.lock();
                inner.about_to_deliver(watch, &event, &resource);
                inner.paused_until
            };
            if let Some(until) = paused {
                sleep_until(until).await;
            }
            loop {
                let released = self.released.notified();
                tokio::pin!(released);
                released.as_mut().enable();
                let is_held = {
                    let inner = self.lock();
                    let is_late = inner.past.is_some() && !event.initial;
                    inner.held.contains_key(&watch.id)
                        || inner.expired.contains(&watch.id)
                        || is_late
                };
                if !is_held {
                    break;
                }
                released.await;
            }
            let mut inner = self.lock();
            let gone = event.kind == EventKind::Deleted;
            let json = (!gone).then_some(event.object);
            let object = (&*resource, event.namespace, event.name);
            inner.detector.event(OPERATOR, object, event.revision, json);
            if !inner.is_ceaseless(&resource, event.namespace, event.name) {
                inner.active = Instant::now();
            }
        })
    }

    fn ends<'a>(&'a self, watch: &'a Watch) -> HookFuture<'a, WatchEnd> {
        Box::pin(async move {
            loop {
                let released = self.released.notified();
                tokio::pin!(released);
                released.as_mut().enable();
                if self.lock().expired.contains(&watch.id) {
                    return WatchEnd::Expired;
                }
                released.await;
            }
        })
    }

    fn watch_ended(&self, watch: &Watch) {
        let mut inner = self.lock();
        inner.held.remove(&watch.id);
        inner.expired.remove(&watch.id);
    }

    fn revision_of(&self, read: StaleRead<'_>) -> Option<u64> {
        if !Inner::is_operator(&read.who.user) {
            return None;
        }
        let mut inner = self.lock();
        inner.reads_any_version |= read.not_older_than == 0;
        let past = inner.past.filter(|past| read.not_older_than <= *past)?;
        inner.past_was_read = true;
        let what = names::resource_of(read.request);
        inner.record(Happened::Fault(format!(
            "list of {what} is of revision {past}"
        )));
        Some(past)
    }
}

impl Inner {
    /// The operator asks for something.
    fn asked(&mut self, request: &ResourceRequest) -> Verdict {
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
    fn answered(
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
    fn about_to_deliver(&mut self, watch: &Watch, event: &WatchEvent<'_>, resource: &str) {
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
