//! The edge of the API server, where a test watches and disturbs: every request is noted, and an
//! operator can be killed just after any of its writes.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use windlass_apiserver::http::{ResourceRequest, Verb};
use windlass_apiserver::{Hooks, Identity, Outcome, Verdict};

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
        let mut resource = request.resource.clone();
        if !request.group.is_empty() {
            resource = format!("{resource}.{}", request.group);
        }
        if let Some(sub) = &request.subresource {
            resource = format!("{resource}/{sub}");
        }
        Self {
            user: who.user.clone(),
            verb: request.verb,
            resource,
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
pub(crate) struct Faults(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    log: Vec<Request>,
    crash: Option<Crash>,
    /// Who was killed and has not been started again: none of its requests gets any further.
    dead: Option<String>,
}

impl Faults {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn log(&self) -> Vec<Request> {
        self.lock().log.clone()
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

    /// `user` has been started again.
    pub(crate) fn revive(&self, user: &str) {
        self.lock().dead.take_if(|dead| dead == user);
    }

    /// Counts a write; answers whom to tell when it is the one to crash after.
    fn is_fatal(&self, who: &Identity, outcome: Outcome) -> Option<Arc<Notify>> {
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
        _: &'a ResourceRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        let is_dead = self.lock().dead.as_ref() == Some(&who.user);
        Box::pin(async move {
            // Its other tasks still run until the crash is heard of; what they send is not to count.
            if is_dead {
                std::future::pending::<()>().await;
            }
            Verdict::Pass
        })
    }

    fn after<'a>(
        &'a self,
        who: &'a Identity,
        request: &'a ResourceRequest,
        outcome: Outcome,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.lock()
            .log
            .push(Request::new(who, request, outcome.code.as_u16()));
        Box::pin(async move {
            if let Some(now) = self.is_fatal(who, outcome) {
                now.notify_one();
                std::future::pending::<()>().await;
            }
        })
    }
}
