//! Answers that their client does not read.
//!
//! A connection whose client reads nothing is cut off by `stall`, by what the transport takes. HTTP/2
//! lets a client read one stream and leave hundreds of others alone: the transport is never stalled,
//! and each answer would be held for as long as the client likes. So each is looked at by itself:
//! one that is not asked for its next piece for too long lets go of what it holds, and breaks off.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, MissedTickBehavior};

use super::{Body, BodyError};

/// Up to this many answers of a connection are known before those that were read are forgotten.
const FEW: usize = 64;

/// The answers of one connection.
#[derive(Clone, Default)]
pub(super) struct Answers(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    answers: Vec<Weak<Mutex<Waiting>>>,
    /// How many there were when those that were read were last forgotten.
    left: usize,
}

/// A body, and since when its client could have asked for more.
struct Waiting {
    /// None once it was given up.
    body: Option<Body>,
    /// None while the body itself has nothing to give: a watch without events.
    since: Option<Instant>,
}

/// A body that is given up when it is not read.
pub(super) struct Read(Arc<Mutex<Waiting>>);

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Answers {
    /// Looks after a body.
    pub(super) fn add(&self, body: Body) -> Read {
        let waiting = Arc::new(Mutex::new(Waiting {
            body: Some(body),
            since: Some(Instant::now()),
        }));
        let mut known = lock(&self.0);
        if known.answers.len() >= FEW + 2 * known.left {
            known.answers.retain(|answer| answer.strong_count() > 0);
            known.left = known.answers.len();
        }
        known.answers.push(Arc::downgrade(&waiting));
        drop(known);
        Read(waiting)
    }

    /// Gives up what is not read for as long as `limit`, for as long as the connection lives.
    pub(super) async fn give_up_after(&self, limit: Duration) {
        let mut interval = tokio::time::interval(limit / 3);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.give_up(limit);
        }
    }

    fn give_up(&self, limit: Duration) {
        let mut given_up = Vec::new();
        lock(&self.0).answers.retain(|waiting| {
            let Some(waiting) = waiting.upgrade() else {
                return false;
            };
            let mut waiting = lock(&waiting);
            if waiting.since.is_some_and(|since| since.elapsed() >= limit) {
                given_up.extend(waiting.body.take());
            }
            waiting.body.is_some()
        });
        // Dropped with nothing locked: a body may have much to let go of.
        drop(given_up);
    }
}

impl http_body::Body for Read {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut waiting = lock(&self.0);
        let Some(body) = &mut waiting.body else {
            let why = "the answer was not read in time";
            return Poll::Ready(Some(Err(BodyError(why.to_owned()))));
        };
        let polled = Pin::new(body).poll_frame(cx);
        waiting.since = polled.is_ready().then(Instant::now);
        polled
    }

    fn is_end_stream(&self) -> bool {
        let waiting = lock(&self.0);
        waiting.body.as_ref().is_some_and(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let waiting = lock(&self.0);
        waiting
            .body
            .as_ref()
            .map(Body::size_hint)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt as _;
    use http_body_util::BodyExt as _;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn answers_that_were_read_are_forgotten() {
        let answers = Answers::default();
        let kept: Vec<_> = (0..10).map(|_| answers.add(Body::whole("x"))).collect();
        for _ in 0..10_000 {
            answers.add(Body::whole("x"));
        }
        assert!(lock(&answers.0).answers.len() <= FEW + 3 * kept.len());
    }

    #[tokio::test(start_paused = true)]
    async fn answer_that_is_not_read_lets_go_of_what_it_holds() {
        let answers = Answers::default();
        let held = Bytes::from(vec![b'x'; 1000]);
        let mut unread = answers.add(Body::pieces([held.clone(), held.clone()]));
        let mut slow = answers.add(Body::stream(futures::stream::iter([1, 2]).then(
            |_| async {
                tokio::time::sleep(LIMIT * 3).await;
                Ok(Bytes::from_static(b"event"))
            },
        )));
        let reading = async {
            // A watch that has nothing to say is not one that is not read.
            assert!(slow.frame().await.unwrap().is_ok());
            assert!(slow.frame().await.unwrap().is_ok());
        };
        tokio::select! {
            () = answers.give_up_after(LIMIT) => {}
            () = reading => {}
        }
        assert!(held.is_unique(), "nobody else holds it");
        assert!(unread.frame().await.unwrap().is_err());
    }
}
