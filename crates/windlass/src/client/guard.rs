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
use tokio::time::{Instant, sleep_until, timeout};
use tower::{BoxError, Service};
use tracing::Instrument;

use super::{
    rehearsal::rehearsed,
    timed::{RESPONSE, Timed},
};
use crate::{
    metrics::{Answered, RequestMetrics},
    telemetry,
};

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

/// What becomes of a write of an operator that does not hold the lease (any more).
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotLeading {
    #[error("this process does not hold the lease: the write was not sent")]
    NotSent,
    #[error("this process lost the lease while a write was under way")]
    GivenUp,
}

/// How often a write under way looks whether the lease still holds: while the machine is suspended
/// no timer goes on.
const LOOK: Duration = Duration::from_secs(1);

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
        if reads(method) || self.leads() {
            Ok(())
        } else {
            Err(NotLeading::NotSent)
        }
    }

    /// Waits for the answer to a request for as long as it may be sent. The client may send it again
    /// by itself, however late: a write ends with the lease.
    async fn hold<T>(
        &self,
        method: &Method,
        answer: impl Future<Output = T>,
    ) -> Result<T, NotLeading> {
        if reads(method) || self.is_alone() {
            return Ok(answer.await);
        }
        tokio::pin!(answer);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return Ok(answer),
                () = sleep_until(self.next_look()) => {
                    if !self.leads() {
                        return Err(NotLeading::GivenUp);
                    }
                }
            }
        }
    }

    fn is_alone(&self) -> bool {
        let leads = *self.0.leads.lock().unwrap_or_else(PoisonError::into_inner);
        leads == Leads::Always
    }

    /// When the lease may have run out.
    fn next_look(&self) -> Instant {
        let soon = Instant::now() + LOOK;
        match *self.0.leads.lock().unwrap_or_else(PoisonError::into_inner) {
            Leads::Until(deadline) => soon.min(deadline.at),
            Leads::Always | Leads::No => soon,
        }
    }
}

fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
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
    type Response = Response<Timed>;
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
            let query = request.uri().query().unwrap_or_default().to_owned();
            let sent = request.body().size_hint().exact();
            metrics.sends(&method, &path);
            let begun = Instant::now();
            let traced = telemetry::Request::new(&request);
            let sending = timeout(RESPONSE, client.send(request).instrument(traced.span()));
            let answer = gate.hold(&method, sending).await?.unwrap_or_else(|_| {
                let seconds = RESPONSE.as_secs();
                let error = format!("the API server did not answer within {seconds} s");
                Err(kube::Error::Service(error.into()))
            });
            let known = answer.as_ref().ok();
            traced.answered(known.map(|answer| answer.status().as_u16()));
            metrics.answered(&Answered {
                method: &method,
                path: &path,
                code: known.map(|answer| answer.status().as_u16()),
                took: begun.elapsed(),
                sent,
                received: known.and_then(|answer| answer.body().size_hint().exact()),
            });
            Ok(answer?.map(|body| Timed::new(body, &query)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn lease_that_ran_out_while_the_machine_was_suspended_does_not_lead() {
        let gate = Gate::new(Leads::until(Instant::now() + LEASE));
        assert!(gate.leads());
        // Suspended for longer, as the two clocks show it afterwards: tokio's stood still.
        let woken = Deadline {
            at: Instant::now() + LEASE,
            since_boot: since_boot(),
        };
        gate.set(Leads::Until(woken));
        assert!(!gate.leads());
        assert!(gate.pass(&Method::PATCH).await.is_err());
        assert!(gate.pass(&Method::GET).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn lease_deadline_is_one_by_the_clock_that_counts_suspended_time() {
        let before = since_boot();
        let Leads::Until(deadline) = Leads::until(Instant::now() + LEASE) else {
            panic!("a deadline");
        };
        assert!(deadline.since_boot >= before + LEASE);
        assert!(deadline.since_boot <= since_boot() + LEASE);
    }

    #[tokio::test(start_paused = true)]
    async fn write_under_way_when_the_lease_runs_out_is_given_up() {
        let gate = Gate::new(Leads::until(Instant::now() + LEASE));
        let begun = Instant::now();
        let never = std::future::pending::<()>();
        let held = gate.hold(&Method::POST, never).await;
        assert!(matches!(held, Err(NotLeading::GivenUp)));
        assert_eq!(begun.elapsed(), LEASE);
    }

    #[tokio::test(start_paused = true)]
    async fn write_under_way_goes_on_while_the_lease_is_renewed() {
        let gate = Gate::new(Leads::until(Instant::now() + LEASE));
        let renewing = async {
            for _ in 0..10 {
                tokio::time::sleep(LEASE / 2).await;
                gate.set(Leads::until(Instant::now() + LEASE));
            }
        };
        let answer = tokio::time::sleep(LEASE * 4);
        let (held, ()) = tokio::join!(gate.hold(&Method::POST, answer), renewing);
        assert!(held.is_ok());
    }
}
