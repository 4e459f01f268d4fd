//! What a run does with its edge: it begins steps and lives, lets go of what is held, and asks what
//! has happened.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::{Deleted, Edge, Side};
use crate::plan::{Act, Fault};
use crate::state::State;
use crate::trace::{Happened, Record};

/// A request that is open for so long while nothing else happens was given up by its client.
const GIVEN_UP: Duration = Duration::from_secs(5);

impl Edge {
    /// A step of the scenario begins. Answers what the plan does to the operator meanwhile.
    pub(crate) fn begin_step(&self, step: usize, what: String) -> Option<Act> {
        let mut inner = self.lock();
        inner.step = step;
        inner.active = Instant::now();
        inner.record(Happened::Step(what));
        let at = inner.point(Side::Step, format!("step {step}"));
        let act = inner.take(&at, |act| {
            matches!(act, Act::Down | Act::Restart | Act::Foreground)
        });
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
        inner.late.clear();
        inner.answers.clear();
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

    /// Whether the plan has another instance lead now.
    pub(crate) fn is_to_be_replaced(&self) -> bool {
        std::mem::take(&mut self.lock().is_to_be_replaced)
    }

    /// Whether a former leader still has a write under way.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.lock().overtaken.is_some()
    }

    /// Whether the plan keeps the operator down.
    pub(crate) fn is_down(&self) -> bool {
        self.lock().down_until.is_some()
    }

    /// Whether replicas of the operator elect a leader.
    pub(crate) fn elects(&self) -> bool {
        !self.lock().locks.is_empty()
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
            .filter(|(_, held)| held.until.is_none_or(|until| Instant::now() >= until))
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
        let answers = inner.answers.len();
        inner.answers.retain(|_, after| *after > step);
        if inner.answers.len() < answers {
            inner.record(Happened::Fault("the answer that was held comes".to_owned()));
            released = Some(Released::Watch);
        }
        if released.is_none()
            && let Some(late) = inner
                .overtaken
                .as_mut()
                .filter(|late| late.after_step <= step && !late.arrives)
        {
            late.arrives = true;
            released = Some(Released::Watch);
        }
        let now = Instant::now();
        if released.is_none() && inner.late.values().any(|until| *until > now) {
            // Not yet: time has to pass.
            return Some(Released::Watch);
        }
        if released.is_none() && inner.down_until.take_if(|until| *until <= step).is_some() {
            released = Some(Released::Restart);
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

    /// Lets go of everything that is held: the next step cannot be taken before. Answers whether the
    /// operator is to be started, which was to be down until later.
    pub(crate) fn let_go(&self) -> bool {
        let mut inner = self.lock();
        inner.let_go("the user waits for a deletion");
        let was_down = inner.down_until.take().is_some();
        if let Some(late) = &mut inner.overtaken {
            late.arrives = true;
        }
        drop(inner);
        self.released.notify_waiters();
        was_down
    }

    /// Whether something is held over the present step: its end is not to be compared.
    pub(crate) fn is_holding(&self) -> bool {
        let inner = self.lock();
        let is_held = !inner.held.is_empty() || !inner.answers.is_empty();
        is_held || inner.down_until.is_some() || inner.overtaken.is_some()
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

    /// Objects of precious kinds that the operator deleted.
    pub(crate) fn deleted(&self) -> Deleted {
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
