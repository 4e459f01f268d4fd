//! [`Guard`]: what every request of an operator passes on its way out.
//!
//! One place, at the very edge: whether the operator still lives, whether it still leads, and what
//! it costs. Nothing that is sent through the operator's client gets around it, be it a handle's
//! request, raw access or a background task's.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body::Body as _;
use kube::{Client, client::Body};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;
use tower::{BoxError, Service};

use super::rehearsal::rehearsed;
use crate::metrics::{Answered, RequestMetrics};

/// Whether requests may go out. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    alive: AtomicBool,
    leads: Mutex<Leads>,
}

/// Until when an operator may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leads {
    /// It is the only one: there is no election.
    Always,
    /// Its lease runs out then.
    Until(Deadline),
    /// Somebody else leads, or may.
    No,
}

/// A moment by two clocks that nothing can turn back: tokio's, which stands still while the machine
/// is suspended, and the machine's own, which goes on. It has passed when one of them says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline {
    at: Instant,
    /// The time since the machine was started, suspended or not.
    since_boot: Duration,
}

impl Deadline {
    fn has_passed(&self) -> bool {
        Instant::now() >= self.at || since_boot() >= self.since_boot
    }
}

impl Leads {
    /// It leads until then.
    pub(crate) fn until(at: Instant) -> Self {
        let left = at.saturating_duration_since(Instant::now());
        Self::Until(Deadline {
            at,
            since_boot: since_boot() + left,
        })
    }
}

fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::try_from(now).unwrap_or_default()
}

/// A write was not sent because the operator does not hold the lease (any more).
#[derive(Debug, thiserror::Error)]
#[error("this process does not hold the lease: the write was not sent")]
pub(crate) struct NotLeading;

impl Gate {
    pub(crate) fn new(leads: Leads) -> Self {
        Self(Arc::new(Inner {
            alive: AtomicBool::new(true),
            leads: Mutex::new(leads),
        }))
    }

    /// The operator ends. One that is dropped is as good as killed: tasks that the runtime has not
    /// yet taken down must not send another request.
    pub(crate) fn end(&self) {
        self.0.alive.store(false, Ordering::SeqCst);
    }

    pub(crate) fn set(&self, leads: Leads) {
        *self.0.leads.lock().unwrap_or_else(PoisonError::into_inner) = leads;
    }

    pub(crate) fn leads(&self) -> bool {
        match *self.0.leads.lock().unwrap_or_else(PoisonError::into_inner) {
            Leads::Always => true,
            Leads::Until(deadline) => !deadline.has_passed(),
            Leads::No => false,
        }
    }

    async fn pass(&self, method: &Method) -> Result<(), NotLeading> {
        if !self.0.alive.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if reads || self.leads() {
            Ok(())
        } else {
            Err(NotLeading)
        }
    }
}

/// A client whose requests pass the gate and are counted; in a rehearsal they change nothing.
pub(crate) fn guard(
    client: Client,
    gate: Gate,
    metrics: RequestMetrics,
    rehearsal: bool,
) -> Client {
    let namespace = client.default_namespace().to_owned();
    let guard = Guard {
        client,
        gate,
        metrics,
        rehearsal,
    };
    Client::new(guard, namespace)
}

struct Guard {
    client: Client,
    gate: Gate,
    metrics: RequestMetrics,
    rehearsal: bool,
}

impl Service<Request<Body>> for Guard {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, gate, metrics) =
            (self.client.clone(), self.gate.clone(), self.metrics.clone());
        let rehearsal = self.rehearsal;
        Box::pin(async move {
            let method = request.method().clone();
            let request = if rehearsal {
                rehearsed(request).await?
            } else {
                request
            };
            gate.pass(&method).await?;
            let path = request.uri().path().to_owned();
            let sent = request.body().size_hint().exact();
            metrics.sends(&method, &path);
            let begun = Instant::now();
            let answer = client.send(request).await;
            let known = answer.as_ref().ok();
            metrics.answered(&Answered {
                method: &method,
                path: &path,
                code: known.map(|answer| answer.status().as_u16()),
                took: begun.elapsed(),
                sent,
                received: known.and_then(|answer| answer.body().size_hint().exact()),
            });
            Ok(answer?)
        })
    }
}
