//! The webhook server on a port: TLS whose certificate can be replaced while it serves.

use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use rustls::{
    ServerConfig,
    pki_types::CertificateDer,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{net::TcpListener, time::timeout};
use tokio_rustls::TlsAcceptor;
use tower::BoxError;
use tracing::warn;

use super::{
    Router,
    certificate::{Keyed, certified},
    router::BODY_LIMIT,
};
use crate::{Error, Result, listen, metrics::WebhookMetrics};

/// How long a review may take to arrive: the API server waits no longer for the whole call.
const BODY: Duration = Duration::from_secs(30);

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
    let body = match body_of(request.into_body()).await {
        Ok(body) => body,
        Err(refusal) => return *refusal,
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

/// The body of a request once all of it has arrived, or why it is not read.
async fn body_of<B>(body: B) -> std::result::Result<Bytes, Box<Response<Full<Bytes>>>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let refused = |code, why| Err(Box::new(text(code, why)));
    match timeout(BODY, Limited::new(body, BODY_LIMIT).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => refused(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the review is larger than 7 MiB\n",
        ),
        Ok(Err(_)) => refused(StatusCode::BAD_REQUEST, "the body broke off\n"),
        Err(_) => refused(StatusCode::REQUEST_TIMEOUT, "the body did not arrive\n"),
    }
}

fn text(code: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = code;
    response
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, stream};
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    /// A body of these pieces, which goes on for ever or ends.
    fn body(pieces: &[usize], ends: bool) -> impl Body<Data = Bytes, Error = BoxError> {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|length| Ok(Frame::data(Bytes::from(vec![b' '; *length]))))
            .collect();
        let rest = if ends {
            stream::empty().boxed()
        } else {
            stream::pending().boxed()
        };
        StreamBody::new(stream::iter(pieces).chain(rest))
    }

    #[tokio::test(start_paused = true)]
    async fn body_that_does_not_arrive_or_is_too_large_is_refused() {
        let code = |refused: Box<Response<_>>| refused.status();
        assert_eq!(body_of(body(&[1, 2], true)).await.unwrap().len(), 3);
        let stopped = body_of(body(&[1], false)).await;
        assert_eq!(stopped.map_err(code), Err(StatusCode::REQUEST_TIMEOUT));
        let large = body_of(body(&[BODY_LIMIT, 1], true)).await;
        assert_eq!(large.map_err(code), Err(StatusCode::PAYLOAD_TOO_LARGE));
    }
}
