//! [`Edge`]: what is between an operator and the API server, and fails in every way that proxies,
//! load balancers and networks do.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream, stream::BoxStream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyStream, StreamBody};
use kube::{Client, client::Body};
use tokio::{sync::watch, time::Instant};
use tower::{BoxError, Service};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// The connection is taken, and nothing is ever said on it.
    Unanswered,
    /// The connection is cut before the request arrives.
    Cut,
    /// The request arrives, and the connection is cut before the answer does.
    AnswerLost,
    /// Answered with this code, in plain text, as proxies do.
    Status(u16),
    /// The answer breaks off in the middle.
    HalfBody,
    /// The answer stops in the middle, and the connection stays.
    SilentBody,
}

/// What becomes of the answers that are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnderWay {
    /// All of them stop, and never go on.
    Stalled,
    /// All of them are cut.
    Cut,
}

/// A write that was sent, or a lease that was renewed.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) method: Method,
    pub(crate) path: String,
}

type Judge = Box<dyn Fn(&Sent) -> Trouble + Send + Sync>;
type Frames = BoxStream<'static, Result<Frame<Bytes>, BoxError>>;

struct Inner {
    client: Client,
    judge: Mutex<Judge>,
    spares_lease: AtomicBool,
    under_way: watch::Sender<UnderWay>,
    /// Every write but those of the lease, when it was sent.
    writes: Mutex<Vec<Sent>>,
    /// Every renewal that was confirmed, when it was sent.
    renewals: Mutex<Vec<Instant>>,
}

/// A client that everything happens to.
#[derive(Clone)]
pub(crate) struct Edge(Arc<Inner>);

impl Edge {
    pub(crate) fn new(client: Client) -> Self {
        Self(Arc::new(Inner {
            client,
            judge: Mutex::new(Box::new(|_| Trouble::None)),
            spares_lease: AtomicBool::new(false),
            under_way: watch::Sender::new(UnderWay::Cut),
            writes: Mutex::default(),
            renewals: Mutex::default(),
        }))
    }

    #[allow(dead_code, reason = "the proxy forwards requests itself")]
    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// From now on this says what becomes of requests.
    pub(crate) fn judge(&self, judge: impl Fn(&Sent) -> Trouble + Send + Sync + 'static) {
        *self.0.judge.lock().unwrap() = Box::new(judge);
    }

    /// Whether requests for the lease arrive, whatever else happens.
    pub(crate) fn spare_lease(&self, spares: bool) {
        self.0.spares_lease.store(spares, Ordering::Relaxed);
    }

    /// Everything arrives again.
    pub(crate) fn clear(&self) {
        self.judge(|_| Trouble::None);
    }

    /// Every answer under way stops, and its connection stays.
    pub(crate) fn stall_answers(&self) {
        self.0.under_way.send_replace(UnderWay::Stalled);
    }

    /// Every connection is cut.
    pub(crate) fn cut_answers(&self) {
        self.0.under_way.send_replace(UnderWay::Cut);
    }

    pub(crate) fn writes(&self) -> Vec<Sent> {
        self.0.writes.lock().unwrap().clone()
    }

    pub(crate) fn renewals(&self) -> Vec<Instant> {
        self.0.renewals.lock().unwrap().clone()
    }
}

impl Service<Request<Body>> for Edge {
    type Response = Response<StreamBody<Frames>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self(edge) = self.clone();
        let sent = Sent {
            at: Instant::now(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
        };
        let (writes, lease) = (sent.method != Method::GET, sent.path.contains("/leases"));
        let trouble = if lease && edge.spares_lease.load(Ordering::Relaxed) {
            Trouble::None
        } else {
            (edge.judge.lock().unwrap())(&sent)
        };
        if writes && !lease {
            edge.writes.lock().unwrap().push(sent.clone());
        }
        Box::pin(async move {
            match trouble {
                Trouble::Unanswered => std::future::pending().await,
                Trouble::Cut => return Err("connection reset by peer".into()),
                Trouble::Status(code) => return Ok(plain(code)),
                _ => {}
            }
            // It sees what happens from now on.
            let under_way = edge.under_way.subscribe();
            let answer = edge.client.send(request).await?;
            if trouble == Trouble::AnswerLost {
                return Err("connection closed before message completed".into());
            }
            if writes && lease && answer.status().is_success() {
                edge.renewals.lock().unwrap().push(sent.at);
            }
            Ok(answer.map(|body| StreamBody::new(body_of(body, trouble, under_way))))
        })
    }
}

fn plain(code: u16) -> Response<StreamBody<Frames>> {
    let text = Bytes::from_static(b"as the weather is\n");
    let frames = stream::iter([Ok(Frame::data(text))]).boxed();
    let mut answer = Response::new(StreamBody::new(frames));
    *answer.status_mut() = code.try_into().unwrap();
    answer
}

/// An answer's body as it arrives.
fn body_of(body: Body, trouble: Trouble, under_way: watch::Receiver<UnderWay>) -> Frames {
    let frames = BodyStream::new(body).map(|frame| frame.map_err(BoxError::from));
    match trouble {
        Trouble::HalfBody => first_half(frames)
            .chain(stream::iter([Err("unexpected end of file".into())]))
            .boxed(),
        Trouble::SilentBody => first_half(frames).chain(stream::pending()).boxed(),
        _ => disturbed(frames.boxed(), under_way),
    }
}

fn first_half(
    frames: impl stream::Stream<Item = Result<Frame<Bytes>, BoxError>> + Send + 'static,
) -> impl stream::Stream<Item = Result<Frame<Bytes>, BoxError>> + Send + 'static {
    frames.take(1).map(|frame| {
        frame.map(|frame| match frame.into_data() {
            Ok(data) => Frame::data(data.slice(..data.len() / 2)),
            Err(frame) => frame,
        })
    })
}

/// Goes on until all answers under way are stopped or cut.
fn disturbed(frames: Frames, under_way: watch::Receiver<UnderWay>) -> Frames {
    let state = (frames, under_way, false);
    stream::unfold(state, |(mut frames, mut under_way, over)| async move {
        if over {
            return None;
        }
        tokio::select! {
            biased;
            changed = under_way.changed() => {
                // The sender lives as long as the edge, and so as the client that reads this.
                changed.ok()?;
                if *under_way.borrow() == UnderWay::Stalled {
                    std::future::pending::<()>().await;
                }
                Some((Err("connection reset by peer".into()), (frames, under_way, true)))
            }
            frame = frames.next() => Some((frame?, (frames, under_way, false))),
        }
    })
    .boxed()
}
