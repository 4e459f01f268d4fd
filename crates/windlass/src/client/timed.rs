//! [`Timed`]: the body of an answer that must go on arriving.
//!
//! A connection may be dead without a word. Nothing else would end the wait for the rest of a body;
//! those of watches and logs may be quiet for long, and have no limit here.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use tokio::time::{Sleep, sleep};
use tower::BoxError;

/// How long the server may take to begin its answer; its own limit for a request is as long.
pub(crate) const RESPONSE: Duration = Duration::from_mins(1);
/// How long it may pause within an answer.
const PAUSE: Duration = Duration::from_secs(30);

/// A body, and how long it may pause.
pub(crate) struct Timed {
    body: Body,
    limited: bool,
    /// Begun when the body makes its reader wait.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    /// The body of an answer to a request with this query.
    pub(crate) fn new(body: Body, query: &str) -> Self {
        let streams = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            matches!(key, "watch" | "follow") && !matches!(value, "false" | "0")
        };
        Self {
            body,
            limited: !query.split('&').any(streams),
            pause: None,
        }
    }
}

impl HttpBody for Timed {
    type Data = <Body as HttpBody>::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.pause = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)));
        }
        if !self.limited {
            return Poll::Pending;
        }
        let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(PAUSE)));
        ready!(pause.as_mut().poll(context));
        let seconds = PAUSE.as_secs();
        let error = format!("the API server paused for {seconds} s within its answer");
        Poll::Ready(Some(Err(error.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
