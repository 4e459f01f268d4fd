//! The edge of the API server, where a test watches and disturbs: every request is noted, requests
//! fail, watches are late or break, and an operator can be killed just after any of its writes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use windlass::testing::Random;
use windlass_apiserver::Identity;
use windlass_apiserver::hooks::{
    EventKind, HookFuture, Hooks, Outcome, Reply, Verdict, Watch, WatchEnd, WatchEvent,
};
use windlass_apiserver::http::{ResourceRequest, Verb};

use windlass_explore::judge::is_precious;
use windlass_explore::names::resource_of;
use windlass_explore::race::{Detector, Race};

use super::explore::{Precious, Script, Step};
use super::outside::{Fate, OutsideCall};

/// How the users of the cluster's own controllers begin.
const SYSTEM: &str = "system:serviceaccount:kube-system:";
/// Of how many revisions it is known when they came to be.
const REVISIONS: usize = 4_096;

/// A request that reached the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who sent it.
    pub user: String,
    /// What it did.
    pub verb: Verb,
    /// `deployments.apps`, with `/status` for a subresource.
    pub resource: String,
    /// Namespace, empty when there is none.
    pub namespace: String,
    /// Name, empty when there is none: in a create the server may have given it.
    pub name: String,
    /// Status code of the answer.
    pub code: u16,
}

impl Request {
    fn new(who: &Identity, request: &ResourceRequest, code: u16) -> Self {
        Self {
            user: who.user.clone(),
            verb: request.verb,
            resource: resource_of(request),
            namespace: request.namespace.clone().unwrap_or_default(),
            name: request.name.clone().unwrap_or_default(),
            code,
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb.as_str(), self.resource)?;
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        if !self.namespace.is_empty() {
            write!(f, " in {}", self.namespace)?;
        }
        Ok(())
    }
}

/// Requests that fail, as told to [`TestCluster::fail`](super::TestCluster::fail).
///
/// ```
/// # use windlass_cluster::{Failure, seconds};
/// let storm = Failure::with(429).by("memcached-operator").lasting(seconds(30));
/// let hiccup = Failure::with(500).on("configmaps").writes().times(3);
/// ```
#[derive(Clone, Debug)]
pub struct Failure {
    code: StatusCode,
    user: Option<String>,
    resource: Option<String>,
    writes: bool,
    times: usize,
    /// Each so manieth request passes.
    spares: Option<usize>,
    hits: usize,
    lasts: Option<Duration>,
    until: Option<Instant>,
}

impl Failure {
    /// Every request fails with this code; what follows narrows it down.
    pub fn with(code: u16) -> Self {
        Self {
            code: StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            user: None,
            resource: None,
            writes: false,
            times: usize::MAX,
            spares: None,
            hits: 0,
            lasts: None,
            until: None,
        }
    }

    /// Only requests of this operator.
    #[must_use]
    pub fn by(mut self, operator: &str) -> Self {
        self.user = Some(user_of(operator));
        self
    }

    /// Only requests for this resource, as in `deployments.apps` or `pods/status`.
    #[must_use]
    pub fn on(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Only writes.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.writes = true;
        self
    }

    /// Only so many times.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Every `n`th of these requests passes: a storm that does not end, and can be lived with.
    #[must_use]
    pub fn sparing_every(mut self, n: usize) -> Self {
        self.spares = Some(n.max(1));
        self
    }

    /// Only for so long.
    #[must_use]
    pub fn lasting(mut self, time: Duration) -> Self {
        self.lasts = Some(time);
        self
    }

    fn hits(&self, who: &Identity, request: &ResourceRequest) -> bool {
        let user = self.user.as_ref().is_none_or(|user| *user == who.user);
        let resource = self
            .resource
            .as_ref()
            .is_none_or(|resource| *resource == resource_of(request));
        user && resource && (!self.writes || request.verb.writes())
    }

    fn is_over(&self) -> bool {
        self.times == 0 || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// The user that an operator is to the API server.
pub(super) fn user_of(operator: &str) -> String {
    format!("system:serviceaccount:{operator}-system:{operator}")
}

/// What becomes of one call to an outside system.
#[derive(Clone, Copy)]
struct Planned {
    /// How many calls are still to pass.
    calls_left: usize,
    fate: Fate,
}

/// Kills an operator after one of its writes.
#[derive(Clone)]
struct Crash {
    user: String,
    /// How many of its writes are still to pass.
    writes_left: usize,
    /// Told when it happens.
    now: Arc<Notify>,
}

/// Notes requests and carries out the faults that were asked for.
#[derive(Default)]
pub(crate) struct Faults {
    inner: Mutex<Inner>,
    /// Told when watches are to break.
    breaks: Notify,
}

#[derive(Default)]
struct Inner {
    log: Vec<Request>,
    failures: Vec<Failure>,
    /// How late watches are, by user and resource.
    delays: Vec<(String, String, Duration)>,
    /// When the latest revisions came to be: a late watch is late by that, not by when it began.
    written: BTreeMap<u64, Instant>,
    /// How late at most every watch of an operator or a controller delivers, at random.
    jitter: Option<(Duration, Random)>,
    crash: Option<Crash>,
    /// Calls to outside systems, and what becomes of one of them.
    outside: Vec<OutsideCall>,
    planned: Option<Planned>,
    /// What kills whoever acts as a user.
    crashes: BTreeMap<String, Arc<Notify>>,
    /// Who was killed and has not been started again: none of its requests gets any further.
    dead: Option<String>,
    /// What follows this run, if it is one of an exploration.
    script: Option<Arc<Script>>,
    /// What operators deleted, and what is there, of the kinds that hold data.
    precious: Precious,
    /// What operators have been shown, and their writes to what had changed since.
    detector: Detector,
}

/// Whether a user is an operator or a controller, and no person.
fn is_program(user: &str) -> bool {
    user.starts_with("system:serviceaccount:")
}

impl Inner {
    /// How late this watch delivers.
    fn delay_of(&self, watch: &Watch) -> Option<Duration> {
        let (user, resource) = (&watch.who.user, resource_of(&watch.request));
        let mut delays = self.delays.iter();
        let fixed = delays.find(|(of, on, _)| of == user && *on == resource);
        if let Some((_, _, delay)) = fixed {
            return Some(*delay).filter(|delay| !delay.is_zero());
        }
        let (most, random) = self.jitter.as_ref()?;
        let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
        is_program(user).then(|| Duration::from_millis(random.below(most.saturating_add(1))))
    }

    /// When a revision came to be: now, if it was not known.
    fn written_at(&mut self, revision: u64) -> Instant {
        let at = *self.written.entry(revision).or_insert_with(Instant::now);
        if self.written.len() > REVISIONS {
            self.written.pop_first();
        }
        at
    }
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn log(&self) -> Vec<Request> {
        self.lock().log.clone()
    }

    pub(crate) fn fail(&self, mut failure: Failure) {
        failure.until = failure.lasts.map(|lasts| Instant::now() + lasts);
        self.lock().failures.push(failure);
    }

    pub(crate) fn delay(&self, user: String, resource: String, delay: Duration) {
        let mut inner = self.lock();
        inner
            .delays
            .retain(|(of, on, _)| !(*of == user && *on == resource));
        inner.delays.push((user, resource, delay));
    }

    /// Every watch of an operator or a controller delivers up to `most` late, each time another time.
    pub(crate) fn delay_at_random(&self, most: Duration, random: Random) {
        self.lock().jitter = (!most.is_zero()).then_some((most, random));
    }

    /// When this watch delivers an event, if later than at once.
    fn due(&self, watch: &Watch, event: &WatchEvent<'_>) -> Option<Instant> {
        if event.initial {
            return None;
        }
        let mut inner = self.lock();
        let delay = inner.delay_of(watch)?;
        Some(inner.written_at(event.revision) + delay)
    }

    pub(crate) fn break_watches(&self) {
        self.breaks.notify_waiters();
    }

    fn failure(&self, who: &Identity, request: &ResourceRequest) -> Option<StatusCode> {
        let mut inner = self.lock();
        inner.failures.retain(|failure| !failure.is_over());
        let hit = inner
            .failures
            .iter_mut()
            .find(|failure| failure.hits(who, request))?;
        hit.hits += 1;
        if hit.spares.is_some_and(|every| hit.hits % every == 0) {
            return None;
        }
        hit.times -= 1;
        Some(hit.code)
    }

    /// Kills `user` just after its `nth` write from now (counted from one): its client never hears the answer.
    pub(crate) fn crash_after(&self, user: &str, nth: usize, now: Arc<Notify>) {
        self.lock().crash = Some(Crash {
            user: user.to_owned(),
            writes_left: nth,
            now,
        });
    }

    /// Whether a crash that was asked for has not happened.
    pub(crate) fn crash_is_pending(&self) -> bool {
        self.lock().crash.is_some()
    }

    /// Blind writes of operators over what they had not been shown.
    pub(crate) fn races(&self) -> Vec<Race> {
        self.lock().detector.races()
    }

    /// Notes what an operator is shown by an answer, and what it writes. The controllers that every
    /// cluster has are no operators.
    fn note_shown(&self, who: &Identity, request: &ResourceRequest, outcome: &Outcome) {
        let mut inner = self.lock();
        let user = &who.user;
        let is_operator = is_program(user) && !user.starts_with(SYSTEM);
        let race = inner.detector.wrote(user, outcome, is_operator);
        if let Some(race) = race {
            println!("warning: {race}");
        }
        let reads = matches!(request.verb, Verb::Get | Verb::List) && outcome.code.is_success();
        if is_operator && reads {
            let resource = resource_of(request);
            let table = resource.split('/').next().unwrap_or_default();
            let namespace = request.namespace.as_deref().unwrap_or_default();
            let name = request.name.as_deref().unwrap_or_default();
            inner.detector.read(user, table, namespace, name);
        }
    }

    /// Has an exploration follow everything from now on.
    pub(crate) fn follow(&self, script: Arc<Script>) {
        self.lock().script = Some(script);
    }

    fn script(&self) -> Option<Arc<Script>> {
        self.lock().script.clone()
    }

    /// What operators deleted, and what is there, of the kinds that hold data.
    pub(crate) fn precious(&self) -> Precious {
        self.lock().precious.clone()
    }

    /// Notes which objects of precious kinds came and went. One with finalizers is deleted by the
    /// request that marks it.
    fn note_precious(&self, who: &Identity, request: &ResourceRequest, outcome: &Outcome) {
        let changes = outcome.changes.iter();
        for change in changes.filter(|change| is_precious(change.resource())) {
            let mut object = format!("{} {}", change.resource(), change.name());
            if !change.namespace().is_empty() {
                object = format!("{object} in {}", change.namespace());
            }
            let mut inner = self.lock();
            let deletes = matches!(request.verb, Verb::Delete | Verb::DeleteCollection);
            let script = inner.script.as_ref();
            if deletes && script.is_some_and(|script| script.follows(&who.user)) {
                inner.precious.deleted.insert(object.clone());
            }
            if change.kind() == EventKind::Deleted {
                inner.precious.kept.remove(&object);
            } else {
                inner.precious.kept.insert(object);
            }
        }
    }

    /// Whoever acts as `user` is killed by telling this.
    pub(crate) fn register(&self, user: &str, crash: Arc<Notify>) {
        self.lock().crashes.insert(user.to_owned(), crash);
    }

    /// Kills `user` now.
    pub(crate) fn kill(&self, user: &str) {
        let mut inner = self.lock();
        if let Some(crash) = inner.crashes.get(user).cloned() {
            inner.dead = Some(user.to_owned());
            crash.notify_one();
        }
    }

    /// Notes a call to an outside system; answers what becomes of it.
    pub(crate) fn outside_call(&self, call: OutsideCall) -> Fate {
        let fate = self.script().map(|script| script.outside(&call));
        let mut inner = self.lock();
        inner.outside.push(call);
        if let Some(fate) = fate {
            return fate;
        }
        let Some(planned) = inner.planned.as_mut() else {
            return Fate::Answered;
        };
        planned.calls_left = planned.calls_left.saturating_sub(1);
        if planned.calls_left > 0 {
            return Fate::Answered;
        }
        inner.planned.take().map_or(Fate::Answered, |one| one.fate)
    }

    pub(crate) fn outside_calls(&self) -> Vec<OutsideCall> {
        self.lock().outside.clone()
    }

    /// Disturbs the `nth` call to an outside system from now (counted from one).
    pub(crate) fn plan(&self, nth: usize, fate: Fate) {
        let calls_left = nth;
        self.lock().planned = Some(Planned { calls_left, fate });
    }

    /// Whether a call that was to be disturbed has not been made.
    pub(crate) fn plan_is_pending(&self) -> bool {
        self.lock().planned.is_some()
    }

    /// `user` has been started again.
    pub(crate) fn revive(&self, user: &str) {
        self.lock().dead.take_if(|dead| dead == user);
    }

    /// Counts a write; answers whom to tell when it is the one to crash after.
    fn is_fatal(&self, who: &Identity, outcome: &Outcome) -> Option<Arc<Notify>> {
        let mut inner = self.lock();
        let crash = inner
            .crash
            .as_mut()
            .filter(|crash| crash.user == who.user)?;
        if !(outcome.wrote && outcome.code.is_success()) {
            return None;
        }
        crash.writes_left = crash.writes_left.saturating_sub(1);
        if crash.writes_left > 0 {
            return None;
        }
        inner.crash.take().map(|crash| {
            inner.dead = Some(crash.user);
            crash.now
        })
    }
}

impl Hooks for Faults {
    fn before<'a>(
        &'a self,
        who: &'a Identity,
        request: &'a ResourceRequest,
    ) -> HookFuture<'a, Verdict> {
        let is_dead = self.lock().dead.as_ref() == Some(&who.user);
        Box::pin(async move {
            // Its other tasks still run until the crash is heard of; what they send is not to count.
            if is_dead {
                std::future::pending::<()>().await;
            }
            let step = self
                .script()
                .map(|script| script.before(&who.user, request));
            if let Some(script) = self.script() {
                script.pause(&who.user).await;
            }
            if let Some(Step::Refuse(code)) = step {
                let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                return Verdict::Fail(code, "refused by the explorer".to_owned());
            }
            match self.failure(who, request) {
                Some(code) => {
                    let code_of = code.as_u16();
                    self.lock().log.push(Request::new(who, request, code_of));
                    Verdict::Fail(code, "as the test asked".to_owned())
                }
                None => Verdict::Pass,
            }
        })
    }

    fn deliver<'a>(&'a self, watch: &'a Watch, event: WatchEvent<'a>) -> HookFuture<'a, ()> {
        let due = self.due(watch, &event);
        let script = self.script();
        Box::pin(async move {
            if let Some(script) = script {
                script.deliver(watch, &event).await;
            }
            if let Some(due) = due {
                sleep_until(due).await;
            }
            let user = &watch.who.user;
            if is_program(user) && !user.starts_with(SYSTEM) {
                let resource = resource_of(&watch.request);
                let object = (&*resource, event.namespace, event.name);
                let json = (event.kind != EventKind::Deleted).then_some(event.object);
                let detector = &mut self.lock().detector;
                detector.event(user, object, event.revision, json);
            }
        })
    }

    fn ends<'a>(&'a self, watch: &'a Watch) -> HookFuture<'a, WatchEnd> {
        Box::pin(async move {
            let Some(script) = self.script() else {
                self.breaks.notified().await;
                return WatchEnd::Closed;
            };
            tokio::select! {
                () = self.breaks.notified() => WatchEnd::Closed,
                () = script.expires(watch) => WatchEnd::Expired,
            }
        })
    }

    fn after<'a>(
        &'a self,
        who: &'a Identity,
        request: &'a ResourceRequest,
        outcome: Outcome,
    ) -> HookFuture<'a, Reply> {
        self.lock()
            .log
            .push(Request::new(who, request, outcome.code.as_u16()));
        for change in &outcome.changes {
            self.lock().written_at(change.revision());
        }
        self.note_precious(who, request, &outcome);
        self.note_shown(who, request, &outcome);
        Box::pin(async move {
            if let Some(now) = self.is_fatal(who, &outcome) {
                now.notify_one();
                std::future::pending::<()>().await;
            }
            let script = self.script();
            match script.map(|script| script.after(&who.user, request, &outcome)) {
                Some(Step::Kill) => {
                    self.kill(&who.user);
                    std::future::pending().await
                }
                Some(Step::Lose) => Reply::Lose,
                _ => {
                    if let Some(script) = self.script() {
                        script.pause(&who.user).await;
                    }
                    Reply::Send
                }
            }
        })
    }
}
