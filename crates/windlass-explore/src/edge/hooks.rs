//! The hooks of the API server: requests and events pass, wait or are lost.

use tokio::time::{Instant, sleep_until};
use windlass_apiserver::Identity;
use windlass_apiserver::hooks::{
    EventKind, HookFuture, Hooks, Outcome, Reply, StaleRead, Verdict, Watch, WatchEnd, WatchEvent,
};
use windlass_apiserver::http::ResourceRequest;

use super::{Edge, Inner, OPERATOR, user};
use crate::names;
use crate::plan::Act;
use crate::trace::Happened;

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
                } else if inner
                    .restarts_until
                    .is_some_and(|until| Instant::now() < until)
                {
                    inner.active = Instant::now();
                    return Verdict::Reset;
                } else {
                    Some(inner.asked(request))
                }
            };
            let Some(verdict) = verdict else {
                // Sent before it died; no client waits for the answer.
                return std::future::pending().await;
            };
            self.released.notify_waiters();
            let is_late = |inner: &Inner| {
                inner
                    .overtaken
                    .is_some_and(|late| user(late.life) == who.user && !late.arrives)
            };
            loop {
                let released = self.released.notified();
                tokio::pin!(released);
                released.as_mut().enable();
                if !is_late(&self.lock()) {
                    return verdict;
                }
                released.await;
            }
        })
    }

    fn after<'a>(
        &'a self,
        who: &'a Identity,
        request: &'a ResourceRequest,
        outcome: Outcome,
    ) -> HookFuture<'a, Reply> {
        let (act, paused, held) = {
            let mut inner = self.lock();
            let act = inner.answered(who, request, &outcome);
            let held = inner.hold_answer(act);
            if act == Some(Act::Pause) {
                inner.paused_until = Some(Instant::now() + inner.pause);
            }
            if matches!(act, Some(Act::Kill | Act::KillOverStep)) {
                inner.is_dead = true;
                inner.is_to_be_killed = true;
                let over = act == Some(Act::KillOverStep);
                inner.down_until = over.then_some(inner.step + 1);
            }
            if act == Some(Act::ServerRestart) {
                inner.restarts_until = Some(Instant::now() + inner.pause);
                let watches = inner.watches.clone();
                inner.reset.extend(watches);
            }
            if inner.broken.is_none() && !outcome.changes.is_empty() && !self.invariants.is_empty()
            {
                inner.broken = inner.violation(&self.invariants, request);
            }
            (act, inner.paused_until, held)
        };
        if act == Some(Act::ServerRestart) {
            self.released.notify_waiters();
        }
        Box::pin(async move {
            if matches!(act, Some(Act::Kill | Act::KillOverStep)) {
                return std::future::pending().await;
            }
            while let Some(held) = held {
                let released = self.released.notified();
                tokio::pin!(released);
                released.as_mut().enable();
                if !self.lock().answers.contains_key(&held) {
                    break;
                }
                released.await;
            }
            if let Some(until) = paused.filter(|_| Inner::is_operator(&who.user)) {
                sleep_until(until).await;
            }
            match act {
                Some(Act::LoseAnswer | Act::ServerRestart) => Reply::Lose,
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
                {
                    let inner = self.lock();
                    if inner.expired.contains(&watch.id) {
                        return WatchEnd::Expired;
                    }
                    if inner.reset.contains(&watch.id) {
                        return WatchEnd::Reset;
                    }
                }
                released.await;
            }
        })
    }

    fn watch_began(&self, watch: &Watch) {
        if Inner::is_operator(&watch.who.user) {
            self.lock().watches.insert(watch.id);
        }
    }

    fn watch_ended(&self, watch: &Watch) {
        let mut inner = self.lock();
        inner.watches.remove(&watch.id);
        inner.reset.remove(&watch.id);
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
