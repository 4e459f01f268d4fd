//! Webhooks over HTTP/1.1, with connections that are kept.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tracing::debug;

use super::{
    exec::LONGEST,
    transport::{Answer, Call, Tls},
};

/// So many connections to one address are kept.
const KEPT: usize = 8;

type Sender = SendRequest<Full<Bytes>>;

/// A client with its connections.
#[derive(Default)]
pub(super) struct Http {
    idle: Mutex<BTreeMap<String, Vec<Sender>>>,
}

/// Where a URL leads.
struct Place {
    host: String,
    port: u16,
    tls: bool,
    path: String,
}

impl Http {
    /// Posts a request.
    pub(super) async fn post(
        &self,
        url: &str,
        endpoints: Option<&[SocketAddr]>,
        tls: &Tls,
        call: &Call,
    ) -> Result<Answer, String> {
        let place = place_of(url)?;
        let name = format!("{}:{} {endpoints:?} {}", place.host, place.port, stamp(tls));
        // One that was kept may have been closed just now: the request is sent again on a new one.
        while let Some(mut sender) = self.kept(&name) {
            if sender.ready().await.is_err() {
                continue;
            }
            match exchange(&mut sender, &place, call).await {
                Ok(answer) => {
                    self.keep(name, sender);
                    return Ok(answer);
                }
                Err(error) => debug!(url, error, "connection was closed, opening another"),
            }
        }
        let mut sender = connect(&place, endpoints, tls).await?;
        let answer = exchange(&mut sender, &place, call).await?;
        self.keep(name, sender);
        Ok(answer)
    }

    fn kept(&self, name: &str) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.get_mut(name)?.pop()
    }

    fn keep(&self, name: String, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|_, senders| {
            senders.retain(|sender| !sender.is_closed());
            !senders.is_empty()
        });
        let senders = idle.entry(name).or_default();
        if senders.len() < KEPT {
            senders.push(sender);
        }
    }
}

/// Tells connections apart that must not be shared.
fn stamp(tls: &Tls) -> String {
    windlass::hash_of(&(&tls.trusted, &tls.shown))
}

fn place_of(url: &str) -> Result<Place, String> {
    let uri: Uri = url
        .parse()
        .map_err(|error| format!("{url} is no URL: {error}"))?;
    let tls = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(format!("{url} is neither http nor https")),
    };
    let host = uri.host().unwrap_or_default();
    if host.is_empty() {
        return Err(format!("{url} has no host"));
    }
    let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Ok(Place {
        host: host.trim_matches(['[', ']']).to_owned(),
        port,
        tls,
        path: path.to_owned(),
    })
}

async fn connect(
    place: &Place,
    endpoints: Option<&[SocketAddr]>,
    tls: &Tls,
) -> Result<Sender, String> {
    let Place { host, port, .. } = place;
    let stream = match endpoints {
        Some([]) => return Err(format!("service {host} has no ready endpoints")),
        Some(endpoints) => TcpStream::connect(endpoints).await,
        None => TcpStream::connect((host.as_str(), *port)).await,
    };
    let stream = stream.map_err(|error| format!("cannot connect to {host}:{port}: {error}"))?;
    let _ = stream.set_nodelay(true);
    if !place.tls {
        return handshake(place, stream).await;
    }
    let config = config_of(tls)?;
    let name = ServerName::try_from(host.clone());
    let name = name.map_err(|_| format!("{host} is no name of a server"))?;
    let stream = TlsConnector::from(config).connect(name, stream).await;
    let stream =
        stream.map_err(|error| format!("cannot connect to {host}:{port} over TLS: {error}"))?;
    handshake(place, stream).await
}

async fn handshake<S>(place: &Place, stream: S) -> Result<Sender, String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let begun = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) =
        begun.map_err(|error| format!("cannot speak HTTP with {}: {error}", place.host))?;
    // Ends when the sender is dropped.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            debug!(%error, "connection to a webhook ended with an error");
        }
    });
    Ok(sender)
}

fn config_of(tls: &Tls) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match &tls.trusted {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate =
                    certificate.map_err(|error| format!("invalid CA bundle: {error}"))?;
                roots
                    .add(certificate)
                    .map_err(|error| format!("invalid CA bundle: {error}"))?;
            }
            if roots.is_empty() {
                return Err("the CA bundle has no certificate".to_owned());
            }
        }
        None => {
            for certificate in rustls_native_certs::load_native_certs().certs {
                let _ = roots.add(certificate);
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot set up TLS: {error}"))?
        .with_root_certificates(roots);
    let config = match &tls.shown {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
            let chain = chain.map_err(|error| format!("invalid client certificate: {error}"))?;
            let key = PrivateKeyDer::from_pem_slice(key)
                .map_err(|_| "invalid key of the client certificate".to_owned())?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| format!("invalid client certificate: {error}"))?
        }
    };
    Ok(Arc::new(config))
}

async fn exchange(sender: &mut Sender, place: &Place, call: &Call) -> Result<Answer, String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        format!("cannot {what} {}:{}: {error}", place.host, place.port)
    };
    let host = if (place.tls, place.port) == (true, 443) || (place.tls, place.port) == (false, 80) {
        place.host.clone()
    } else {
        format!("{}:{}", place.host, place.port)
    };
    let mut request = Request::post(&place.path)
        .header(header::HOST, host)
        .header(header::CONTENT_TYPE, "application/json");
    for (name, value) in &call.headers {
        request = request.header(name, value);
    }
    let request = request
        .body(Full::new(Bytes::from(call.body.clone())))
        .map_err(|error| failed("make a request to", &error))?;
    let response = sender
        .send_request(request)
        .await
        .map_err(|error| failed("post to", &error))?;
    let (head, body) = response.into_parts();
    let limit = usize::try_from(LONGEST).unwrap_or(usize::MAX);
    let body = Limited::new(body, limit)
        .collect()
        .await
        .map_err(|error| failed("read the answer of", &error))?
        .to_bytes();
    let text = |(name, value): (&header::HeaderName, &header::HeaderValue)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    };
    Ok(Answer {
        status: head.status.as_u16(),
        headers: head.headers.iter().filter_map(text).collect(),
        body: body.to_vec(),
    })
}
