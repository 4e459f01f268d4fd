//! The server on a port: TLS, HTTP/1.1 and HTTP/2, one certificate per connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustix::process::{Resource, getrlimit};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_apimachinery::connections::{Connections, Place};

use super::aside::Aside;
use super::certificate::{ClientCertificates, Shown};
use super::stall::{Stalling, UnderWay};
use super::unread::Answers;
use crate::node::Peer;
use crate::pki::KeyedCertificate;
use crate::server::ApiServer;

/// How long a client may take to finish the TLS handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// How long a connection may wait for a request, from its first byte to the end of its headers
/// included; kube-apiserver's idle connections live as long.
const HEADER_LIMIT: Duration = Duration::from_secs(90);
/// How long a client may not read what it is sent.
const STALL_LIMIT: Duration = Duration::from_secs(30);
/// A connection that says nothing is asked this often whether its client is still there, and
/// given up when there is no answer in time. HTTP/1.1 has no such question.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_LIMIT: Duration = Duration::from_secs(15);
/// How many requests a connection may have under way, as kube-apiserver's.
const MAX_STREAMS: u32 = 250;
/// Files that connections leave to others: logs, the store, calls to nodes, and what connects to the
/// node and its name server.
const FILES_LEFT: u64 = 384;
/// With how many connections a process must be able to cope.
const MIN_CONNECTIONS: u64 = 64;

/// Half of them may be connections of one address whose clients have shown no certificate, so many
/// at least, and at most; for one more, an old one of them is closed. Pods reach this port, too, and need no right to keep a connection.
const FEW: usize = 64;
const MANY: usize = 4096;

/// The server's own certificate, and the CA that signs its clients'.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// What the server shows.
    pub serving: KeyedCertificate,
    /// Who signs client certificates, as PEM.
    pub client_ca: String,
}

/// A server that accepts connections until it is told to stop.
#[derive(Debug)]
pub struct Serving {
    /// Where it listens.
    pub address: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Serving {
    /// Stops accepting and closes every connection.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl ApiServer {
    /// Serves on `listener` until [`Serving::stop`].
    pub fn serve(&self, listener: TcpListener, tls: &TlsConfig) -> io::Result<Serving> {
        let address = listener.local_addr()?;
        self.served_at(address);
        let certificates = Arc::new(ClientCertificates::signed_by(&tls.client_ca)?);
        let config = rustls_config(tls, certificates.clone())?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let possible = self.max_connections().unwrap_or_else(connections_possible);
        let (room, strangers) = (
            Arc::new(Semaphore::new(possible)),
            Connections::new((possible / 2).clamp(FEW, MANY)),
        );
        let server = self.clone();
        let (stopped, tracker) = (stop.clone(), tasks.clone());
        tasks.spawn(async move {
            loop {
                // Who comes when there is no room waits in the kernel's queue until somebody goes.
                let accepted = tokio::select! {
                    biased;
                    () = stopped.cancelled() => return,
                    accepted = async {
                        let place = room.clone().acquire_owned().await;
                        Ok::<_, io::Error>((listener.accept().await?, place))
                    } => accepted,
                };
                match accepted {
                    Ok(((stream, peer), place)) => {
                        let stranger = strangers.add(peer.ip());
                        let connection = connection(
                            server.clone(),
                            acceptor.clone(),
                            certificates.clone(),
                            stream,
                            stranger,
                            stopped.clone(),
                        );
                        tracker.spawn(async move {
                            connection.await;
                            drop(place);
                        });
                    }
                    Err(error) => {
                        // Out of file descriptors, most likely: others must close first.
                        tracing::warn!(%error, "accepting a connection failed");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        });
        Ok(Serving {
            address,
            stop,
            tasks,
        })
    }
}

/// How many connections this process has files for.
fn connections_possible() -> usize {
    let files = getrlimit(Resource::Nofile).current;
    let connections = files.map_or(u64::MAX, |files| files.saturating_sub(FILES_LEFT));
    usize::try_from(connections.max(MIN_CONNECTIONS))
        .unwrap_or(usize::MAX)
        .min(Semaphore::MAX_PERMITS)
}

async fn connection(
    server: ApiServer,
    acceptor: TlsAcceptor,
    certificates: Arc<ClientCertificates>,
    stream: TcpStream,
    stranger: Place<IpAddr>,
    stop: CancellationToken,
) {
    let _ = stream.set_nodelay(true);
    let peer = stream.peer_addr().ok().map(|peer| Peer(peer.ip()));
    let stream = Stalling::new(stream, STALL_LIMIT, UnderWay::default());
    let shaken = tokio::select! {
        biased;
        () = stop.cancelled() => return,
        () = stranger.closed() => return,
        shaken = timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)) => shaken,
    };
    let Ok(Ok(stream)) = shaken else {
        return;
    };
    let chain = stream.get_ref().1.peer_certificates();
    let shown = Shown::new(certificates, chain, UnixTime::now());
    // Held for as long as the connection lasts, unless its client is known.
    let stranger = (!shown.is_known()).then_some(stranger);
    converse(server, stream, peer, shown, stranger, stop).await;
}

/// Answers the requests of a client.
async fn converse<S>(
    server: ApiServer,
    stream: S,
    peer: Option<Peer>,
    shown: Shown,
    stranger: Option<Place<IpAddr>>,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (shown, stranger) = (Arc::new(shown), stranger.map(Arc::new));
    let used = stranger.clone();
    // Above TLS, which reads ahead: there the end comes after the request.
    let under_way = UnderWay::default();
    let stream = Stalling::new(stream, STALL_LIMIT, under_way.clone());
    let answers = Answers::default();
    let looked_after = answers.clone();
    // HTTP/2 would reset the stream of one request only.
    let reset = CancellationToken::new();
    let resets = reset.clone();
    let begun = Arc::new(Notify::new());
    let begins = begun.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (server, presented) = (server.clone(), shown.at(UnixTime::now()));
        let (counted, answers) = (under_way.count(), looked_after.clone());
        let reset = resets.clone();
        begins.notify_one();
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        if let Some(stranger) = &used {
            stranger.is_used();
        }
        async move {
            let aside = Aside::of_this_runtime();
            let answer = server.handle(request, &presented, aside).await;
            drop(counted);
            if answer.is_err() {
                reset.cancel();
            }
            answer.map(|answer| answer.map(|body| answers.add(body)))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_LIMIT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_LIMIT)
        .max_concurrent_streams(MAX_STREAMS);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = reset.cancelled() => {}
        () = answers.give_up_after(STALL_LIMIT) => {}
        () = silent(&begun) => {}
        () = closed(stranger.as_deref()) => {}
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(error, "connection ended");
            }
        }
    }
}

/// Ends when a connection must be closed for another.
async fn closed(stranger: Option<&Place<IpAddr>>) {
    match stranger {
        Some(stranger) => stranger.closed().await,
        None => std::future::pending().await,
    }
}

/// Ends when no request has begun in time. Until it is known which version of HTTP a client speaks,
/// no limit of hyper's holds.
async fn silent(begun: &Notify) {
    if timeout(HEADER_LIMIT, begun.notified()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}

fn rustls_config(
    tls: &TlsConfig,
    certificates: Arc<ClientCertificates>,
) -> io::Result<rustls::ServerConfig> {
    let invalid = |what: &str, error: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{what}: {error}"))
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = CertificateDer::pem_slice_iter(tls.serving.certificate.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| invalid("serving certificate", &error))?;
    let key = PrivateKeyDer::from_pem_slice(tls.serving.key.as_bytes())
        .map_err(|error| invalid("serving key", &error))?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid("TLS", &error))?
        .with_client_cert_verifier(certificates)
        .with_single_cert(chain, key)
        .map_err(|error| invalid("serving certificate", &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::Authority;
    use crate::server::Config;

    #[tokio::test(start_paused = true)]
    async fn connection_that_says_nothing_after_its_handshake_is_closed() {
        let authority = Authority::create().expect("an authority");
        let certificates = ClientCertificates::signed_by(&authority.pem().certificate);
        let certificates = Arc::new(certificates.expect("an authority"));
        let shown = Shown::new(certificates, None, UnixTime::now());
        let (client, stream) = tokio::io::duplex(1024);
        let (server, begun) = (
            ApiServer::new(Config::default()),
            tokio::time::Instant::now(),
        );
        converse(server, stream, None, shown, None, CancellationToken::new()).await;
        assert_eq!(begun.elapsed(), HEADER_LIMIT);
        drop(client);
    }
}
