//! `GET /portForward/<namespace>/<pod>`: connections to ports of a pod, many in one.
//!
//! By SPDY, in a WebSocket or without one, the client opens two streams with the same `requestid`
//! for each connection: one for the data, and one on which it is told what went wrong. By the
//! channels of a WebSocket there is one connection to each port that the request names.

mod channels;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::spdy::{Decoder, Encoder, Frame, Headers};
use super::upgrade::{Conversation, Offers, upgrade};
use super::{Body, Server, no_such_pod, text, wire};
use crate::runtime::{Connection, Runtime};

const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
const BASE64: &str = "v4.base64.channel.k8s.io";
const OFFERS: Offers = Offers {
    socket: &[TUNNEL, "v4.channel.k8s.io", BASE64, ""],
    spdy: &["portforward.k8s.io"],
};
/// How much is read from a pod at once.
const CHUNK: usize = 32 * 1024;
/// How many pieces may wait for a pod.
const UNSENT: usize = 64;

/// Serves the connections of one client until it goes.
pub(super) fn forward<R: Runtime>(
    request: Request<Incoming>,
    server: &Arc<Server<R>>,
    namespace: &str,
    pod: &str,
    query: &str,
) -> Response<Body> {
    let Some(found) = server.directory.find(namespace, pod) else {
        return no_such_pod();
    };
    let uid = found.metadata.uid.clone().unwrap_or_default();
    let runtime = server.runtime.clone();
    let ports = channels::ports(query);
    // Those who open streams name their ports there.
    let names_ports = super::upgrade::prefers_channels(&request, &OFFERS, TUNNEL);
    if let (true, Err(why)) = (names_ports, &ports) {
        return text(StatusCode::BAD_REQUEST, why.clone());
    }
    upgrade(request, &OFFERS, move |conversation| async move {
        match conversation {
            Conversation::Socket(socket, protocol) if protocol != TUNNEL => {
                let form = if protocol == BASE64 {
                    channels::Form::Base64
                } else {
                    channels::Form::Binary
                };
                channels::carry(*socket, form, ports.unwrap_or_default(), runtime, uid).await;
            }
            streams => carry(streams, runtime, uid).await,
        }
    })
}

/// A pair of streams that is not complete yet.
#[derive(Default)]
struct Pair {
    error: Option<u32>,
    data: Option<u32>,
    port: Option<u16>,
}

/// What the client sends on a stream, on its way to the pod. The end of it is the end of the
/// sender.
type Upstream = mpsc::Sender<Bytes>;

async fn carry<R: Runtime>(conversation: Conversation, runtime: Arc<R>, uid: String) {
    let (mut reader, outgoing, writer) = wire::open(conversation);
    let mut client = Client {
        runtime,
        uid,
        outgoing,
        encoder: Encoder::new(),
        pairs: BTreeMap::new(),
        waiting: BTreeMap::new(),
        upstreams: BTreeMap::new(),
        connections: JoinSet::new(),
    };
    let mut decoder = Decoder::new();
    'client: while let Some(bytes) = reader.next().await {
        decoder.put(&bytes);
        loop {
            match decoder.next() {
                Ok(Some(frame)) => {
                    if client.hear(frame).await.is_none() {
                        break 'client;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "a client that forwards ports makes no sense");
                    break 'client;
                }
            }
        }
    }
    client.connections.shutdown().await;
    drop(client);
    wire::close(reader, writer).await;
}

struct Client<R> {
    runtime: Arc<R>,
    uid: String,
    outgoing: mpsc::Sender<Bytes>,
    encoder: Encoder,
    /// Streams by the request they belong to, until both are there.
    pairs: BTreeMap<String, Pair>,
    /// What came on a stream whose other one is not there yet.
    waiting: BTreeMap<u32, mpsc::Receiver<Bytes>>,
    upstreams: BTreeMap<u32, Upstream>,
    /// Ends them when the client goes.
    connections: JoinSet<()>,
}

impl<R: Runtime> Client<R> {
    /// Acts on a frame; none when the client is gone or wants to go.
    async fn hear(&mut self, frame: Frame) -> Option<()> {
        match frame {
            Frame::Open {
                stream,
                headers,
                last,
            } => self.open(stream, &headers, last).await?,
            Frame::Data {
                stream,
                bytes,
                last,
            } => {
                if let Some(upstream) = self.upstreams.get(&stream)
                    && !bytes.is_empty()
                {
                    // A pod that has closed its side does not mind.
                    let _ = upstream.send(bytes).await;
                }
                if last {
                    self.upstreams.remove(&stream);
                }
            }
            Frame::Reset { stream } => {
                self.upstreams.remove(&stream);
            }
            Frame::Ping { id } => self.outgoing.send(Encoder::ping(id)).await.ok()?,
            Frame::GoAway => return None,
            Frame::Other => {}
        }
        Some(())
    }

    async fn open(&mut self, stream: u32, headers: &Headers, last: bool) -> Option<()> {
        let reply = self.encoder.reply(stream);
        self.outgoing.send(reply).await.ok()?;
        let get = |name: &str| headers.get(name).map(String::as_str).unwrap_or_default();
        let request = match get("requestid") {
            // Old clients leave it out: the data stream follows its error stream.
            "" => stream.saturating_sub(stream % 4).to_string(),
            id => id.to_owned(),
        };
        let pair = self.pairs.entry(request.clone()).or_default();
        pair.port = get("port").parse().ok().or(pair.port);
        if get("streamtype") == "error" {
            pair.error = Some(stream);
        } else {
            pair.data = Some(stream);
            let (upstream, bytes) = mpsc::channel(UNSENT);
            if !last {
                self.upstreams.insert(stream, upstream);
            }
            self.waiting.insert(stream, bytes);
        }
        if let (Some(error), Some(data)) = (pair.error, pair.data) {
            let port = pair.port.unwrap_or_default();
            self.pairs.remove(&request);
            if let Some(bytes) = self.waiting.remove(&data) {
                let tunnel = Tunnel {
                    uid: self.uid.clone(),
                    port,
                    error,
                    data,
                    outgoing: self.outgoing.clone(),
                };
                self.connections
                    .spawn(tunnel.run(self.runtime.clone(), bytes));
            }
        }
        // Those that have ended are forgotten.
        while self.connections.try_join_next().is_some() {}
        Some(())
    }
}

/// One connection.
struct Tunnel {
    uid: String,
    port: u16,
    error: u32,
    data: u32,
    outgoing: mpsc::Sender<Bytes>,
}

impl Tunnel {
    async fn run<R: Runtime>(self, runtime: Arc<R>, from_client: mpsc::Receiver<Bytes>) {
        match runtime.connect(&self.uid, self.port).await {
            Ok(connection) => {
                let (from_pod, to_pod) = tokio::io::split(connection);
                let send = send_to_pod(from_client, to_pod);
                futures::join!(send, self.send_to_client(from_pod));
                self.say(self.error, b"", true).await;
            }
            Err(error) => {
                let message = format!(
                    "error forwarding port {} to pod {}: {error}",
                    self.port, self.uid
                );
                self.say(self.error, message.as_bytes(), true).await;
                self.say(self.data, b"", true).await;
            }
        }
    }

    async fn send_to_client(&self, mut from_pod: ReadHalf<Box<dyn Connection>>) {
        let mut chunk = vec![0; CHUNK];
        while let Ok(length @ 1..) = from_pod.read(&mut chunk).await {
            self.say(self.data, &chunk[..length], false).await;
        }
        self.say(self.data, b"", true).await;
    }

    /// A client that is gone does not mind; its connections end with it.
    async fn say(&self, stream: u32, bytes: &[u8], last: bool) {
        let _ = self.outgoing.send(Encoder::data(stream, bytes, last)).await;
    }
}

async fn send_to_pod(
    mut from_client: mpsc::Receiver<Bytes>,
    mut to_pod: WriteHalf<Box<dyn Connection>>,
) {
    while let Some(bytes) = from_client.recv().await {
        if to_pod.write_all(&bytes).await.is_err() {
            return;
        }
    }
    let _ = to_pod.shutdown().await;
}
