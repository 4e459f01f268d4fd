//! The node's HTTPS server: what the API server asks a node for.
//!
//! | path | what |
//! | --- | --- |
//! | `/healthz` | whether the node is there |
//! | `/containerLogs/<namespace>/<pod>/<container>` | what a container has written |
//! | `/exec/<namespace>/<pod>/<container>` | a command in a container, by WebSocket or SPDY |
//! | `/attach/<namespace>/<pod>/<container>` | the container itself, by WebSocket or SPDY |
//! | `/portForward/<namespace>/<pod>` | connections to ports of a pod, by WebSocket or SPDY |
//!
//! Only a client with a certificate of the given authority is answered; the handshake fails for
//! everyone else.

mod dictionary;
mod farewell;
mod forward;
mod logs;
mod query;
mod room;
mod session;
mod spdy;
mod tls;
mod upgrade;
mod wire;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use windlass::testing::Clock;

use crate::agent::Directory;
use crate::fault::Faults;
use crate::runtime::Runtime;
pub(crate) use room::Limits;
use room::Room;
pub(crate) use tls::acceptor;
pub use tls::{Tls, TlsError};

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// What requests are answered from.
pub(crate) struct Server<R> {
    pub(crate) runtime: Arc<R>,
    pub(crate) directory: Directory,
    pub(crate) clock: Clock,
    pub(crate) faults: Faults,
}

/// Serves until told to stop; connections end with it.
pub(crate) async fn serve<R: Runtime>(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    server: Server<R>,
    limits: Limits,
    stopping: CancellationToken,
) {
    let server = Arc::new(server);
    let room = Room::new(&limits);
    let mut connections = JoinSet::new();
    // Who comes when there is no room waits in the kernel's queue.
    let accept = async || {
        let place = room.place().await;
        (listener.accept().await, place)
    };
    loop {
        tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            Some(_) = connections.join_next() => {}
            (accepted, place) = accept() => match accepted {
                Ok((stream, peer)) => {
                    let Some(stranger) = room.stranger(peer.ip()) else {
                        continue;
                    };
                    let (acceptor, server) = (acceptor.clone(), server.clone());
                    connections.spawn(async move {
                        if let Some(stream) = greet(stream, &acceptor, &server, &limits).await {
                            drop(stranger);
                            attend(stream, server, &limits).await;
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // Out of file descriptors, most likely: some will be closed meanwhile.
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            },
        }
    }
}

/// Finds out who a client is; none when it does not say, or takes too long.
async fn greet<R: Runtime>(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    server: &Server<R>,
    limits: &Limits,
) -> Option<TlsStream<TcpStream>> {
    server.faults.answering().await;
    let _ = stream.set_nodelay(true);
    match tokio::time::timeout(limits.handshake, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a client without a proper certificate was turned away");
            None
        }
        Err(_) => None,
    }
}

async fn attend<R: Runtime>(stream: TlsStream<TcpStream>, server: Arc<Server<R>>, limits: &Limits) {
    let service = service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(answer(request, &server).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection to the node's server broke");
    }
}

async fn answer<R: Runtime>(request: Request<Incoming>, server: &Arc<Server<R>>) -> Response<Body> {
    server.faults.answering().await;
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (request.method(), parts.as_slice()) {
        (&Method::GET, ["healthz"]) => text(StatusCode::OK, "ok"),
        (&Method::GET, ["containerLogs", namespace, pod, container]) => {
            logs::logs(server, namespace, pod, container, &query).await
        }
        (&Method::GET, ["exec", namespace, pod, container]) => {
            session::exec(request, server, namespace, pod, container, &query).await
        }
        (&Method::GET, ["attach", namespace, pod, container]) => {
            session::attach(request, server, namespace, pod, container, &query).await
        }
        (&Method::GET, ["portForward", namespace, pod]) => {
            forward::forward(request, server, namespace, pod, &query)
        }
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// The answer that there is no pod of that name.
fn no_such_pod() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "pod does not exist")
}

fn text(status: StatusCode, message: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(whole(message));
    *response.status_mut() = status;
    response
}

fn whole(message: impl Into<Bytes>) -> Body {
    Full::new(message.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}
