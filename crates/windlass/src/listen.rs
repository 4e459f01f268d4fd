//! Accepting connections, with limits: what can connect to an operator must not be able to use up
//! its file descriptors, which it needs for the API server and its lease, nor keep others from
//! being answered.

use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};
use windlass_apimachinery::connections::{Connections, Place};

/// How many connections one server has at once. For one more, an old one is closed.
const CONNECTIONS: usize = 256;
/// How long a TLS handshake may take, then the first request, and the head of each later one.
const HEAD: Duration = Duration::from_secs(10);
/// How often a peer that speaks HTTP/2 is asked whether it is still there.
const PING: Duration = Duration::from_secs(20);
/// How long the server rests when it cannot accept: what it closes, or others do, has to end first.
const REST: Duration = Duration::from_millis(100);

/// Serves every connection until it is dropped; over TLS, if there is an acceptor.
pub(crate) async fn serve<F, Fut>(listener: TcpListener, tls: Option<TlsAcceptor>, answer: F)
where
    F: Fn(Request<Incoming>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let (open, mut tasks) = (Connections::new(CONNECTIONS), JoinSet::new());
    loop {
        while tasks.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                open.close_oldest();
                sleep(REST).await;
                continue;
            }
        };
        let place = Arc::new(open.add(()));
        let (tls, answer) = (tls.clone(), answer.clone());
        tasks.spawn(async move {
            tokio::select! {
                biased;
                () = place.closed() => debug!("connection closed for a newer one"),
                () = connection(stream, tls, Arc::clone(&place), answer) => {}
            }
        });
    }
}

async fn connection<F, Fut>(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    place: Arc<Place<()>>,
    answer: F,
) where
    F: Fn(Request<Incoming>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let _ = stream.set_nodelay(true);
    match tls {
        None => converse(stream, place, answer).await,
        Some(tls) => match timeout(HEAD, tls.accept(stream)).await {
            Ok(Ok(stream)) => converse(stream, place, answer).await,
            Ok(Err(error)) => debug!(%error, "TLS handshake failed"),
            Err(_) => debug!("TLS handshake timed out"),
        },
    }
}

async fn converse<S, F, Fut>(stream: S, place: Arc<Place<()>>, answer: F)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    F: Fn(Request<Incoming>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let begun = Arc::new(Notify::new());
    let begins = Arc::clone(&begun);
    let service = service_fn(move |request| {
        begins.notify_one();
        place.is_used();
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(HEAD);
    let silent = async {
        // Until it is known which version of HTTP the peer speaks, no limit of hyper's holds.
        if timeout(HEAD, begun.notified()).await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = server.serve_connection(TokioIo::new(stream), service) => {
            if let Err(error) = ended {
                debug!(%error, "connection ended with an error");
            }
        }
        () = silent => debug!("connection sent no request in time"),
    }
}
