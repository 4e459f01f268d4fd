//! The edge of the API server in one run: what happens is recorded, and the faults of a plan are
//! carried out.

mod hooks;
mod objects;
mod points;
mod run;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::invariant::Invariant;
use crate::plan::{Act, Fault, Plan, Point};
use crate::race::Detector;
use crate::trace::{Happened, Record};

pub(crate) use run::Released;

/// How the users begin that the operator is, one for each of its lives.
const USER: &str = "explored-operator-";
/// What it is called in plans.
pub(crate) const OPERATOR: &str = "operator";
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

/// Objects that were deleted, by what they are called: the steps in which each was made and deleted.
pub(crate) type Deleted = BTreeMap<String, BTreeSet<(usize, usize)>>;

/// Why a watch is held.
#[derive(Clone, Copy)]
struct Held {
    /// Until the operator writes, too.
    until_write: bool,
    /// Until the step after this one has settled.
    after_step: usize,
    /// Not before then, whatever else has settled.
    until: Option<Instant>,
    /// Whether it expires then.
    expires: bool,
}

/// A leader that has stopped with a write under way.
#[derive(Clone, Copy)]
struct Overtaken {
    /// Which life of the operator.
    life: usize,
    /// When the write arrives: once the step after this one has settled.
    after_step: usize,
    /// Whether it may arrive.
    arrives: bool,
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
    /// Watches that are late for long, by what they watch: one that is begun again is as late.
    late: HashMap<String, Instant>,
    /// Answers that are held, each until the step after this one has settled.
    answers: BTreeMap<u64, usize>,
    /// How often the operator has written while one is.
    writes_held: usize,
    /// The operator is not started again before this step has settled.
    down_until: Option<usize>,
    overtaken: Option<Overtaken>,
    is_to_be_replaced: bool,
    /// Watches of the operator that there are.
    watches: HashSet<u64>,
    /// Those whose connection is to be reset.
    reset: HashSet<u64>,
    /// The API server answers nobody before.
    restarts_until: Option<Instant>,
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
    deleted: Deleted,
    /// In which step an object of a precious kind was made, by its uid.
    made: HashMap<String, usize>,
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
    Answered,
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
            late: HashMap::new(),
            answers: BTreeMap::new(),
            writes_held: 0,
            down_until: None,
            overtaken: None,
            is_to_be_replaced: false,
            watches: HashSet::new(),
            reset: HashSet::new(),
            restarts_until: None,
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
            deleted: Deleted::new(),
            made: HashMap::new(),
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
        self.late.clear();
        let answers = std::mem::take(&mut self.answers);
        let past = self.past.take();
        if held.is_empty() && answers.is_empty() && past.is_none() {
            return;
        }
        let expired = held.iter().filter(|(_, held)| held.expires);
        self.expired.extend(expired.map(|(id, _)| *id));
        self.record(Happened::Fault(format!("{why}: what was held goes on")));
    }

    /// Whether requests of this user are those of a leader whose write now arrives.
    fn is_overtaken(&self, who: &str) -> bool {
        self.overtaken
            .is_some_and(|late| late.arrives && who == user(late.life))
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
}
