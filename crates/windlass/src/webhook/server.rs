//! The webhook server on a port: TLS whose certificate can be replaced while it serves.

use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock},
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use rustls::{
    ServerConfig,
    pki_types::CertificateDer,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tracing::warn;

use super::{
    Router,
    certificate::{Keyed, certified},
    router::BODY_LIMIT,
};
use crate::{Error, Result, listen, metrics::WebhookMetrics};

/// The certificate that is shown now; none until there is one.
pub(crate) struct Shown {
    key: RwLock<Option<Arc<CertifiedKey>>>,
    metrics: WebhookMetrics,
}

impl Shown {
    pub(crate) fn new(metrics: WebhookMetrics) -> Self {
        Self {
            key: RwLock::default(),
            metrics,
        }
    }

    /// Shows another certificate from the next connection on.
    pub(crate) fn set(&self, keyed: &Keyed) -> Result<()> {
        self.metrics.certificate_reads.inc();
        let used = self.show(keyed);
        used.inspect_err(|_| {
            self.metrics.certificate_errors.inc();
        })
    }

    /// There is no certificate where one should be.
    pub(crate) fn unreadable(&self) {
        self.metrics.certificate_reads.inc();
        self.metrics.certificate_errors.inc();
    }

    fn show(&self, keyed: &Keyed) -> Result<()> {
        let certified = certified(keyed)?;
        *self.key.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }

    fn get(&self) -> Option<Arc<CertifiedKey>> {
        self.key
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The chain as it would be shown.
    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.get().map(|key| key.cert.clone()).unwrap_or_default()
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.get()
    }
}

/// Listens on an address.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| Error::other(format!("cannot listen for webhooks on {address}: {error}")))
}

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, router: Arc<Router>, shown: Arc<Shown>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        match ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions() {
            Ok(config) => config,
            Err(error) => {
                warn!(%error, "cannot serve webhooks");
                return;
            }
        };
    let mut config = config.with_no_client_auth().with_cert_resolver(shown);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    listen::serve(listener, Some(acceptor), move |request| {
        let router = Arc::clone(&router);
        async move { answer(request, &router).await }
    })
    .await;
}

async fn answer(request: Request<Incoming>, router: &Router) -> Response<Full<Bytes>> {
    if request.method() != Method::POST {
        return text(StatusCode::METHOD_NOT_ALLOWED, "webhooks are POSTed to\n");
    }
    let path = request.uri().path().to_owned();
    let body = match Limited::new(request.into_body(), BODY_LIMIT)
        .collect()
        .await
    {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            return text(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the review is larger than 7 MiB\n",
            );
        }
        Err(_) => return text(StatusCode::BAD_REQUEST, "the body broke off\n"),
    };
    let (code, body) = router.answer(&path, &body).await;
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let kind = if code == 200 {
        "application/json"
    } else {
        "text/plain; charset=utf-8"
    };
    let headers = response.headers_mut();
    headers.insert("content-type", http::HeaderValue::from_static(kind));
    response
}

fn text(code: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = code;
    response
}
