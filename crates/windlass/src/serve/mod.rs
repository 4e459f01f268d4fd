//! What a running operator answers: probes, metrics and the debug page.
//!
//! Probes are for the kubelet and say nothing worth hiding. Metrics and the debug page are served
//! over TLS to those whom the API server knows and lets read them (what kubebuilder's auth proxy
//! did), or, on a laptop, in the clear on loopback.

mod access;
mod tls;

use std::{net::SocketAddr, sync::Arc};

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use tokio::{net::TcpListener, task::JoinSet};

use self::access::Access;
use crate::{Error, Result, listen, run::DebugInfo};

type Answer = Response<Full<Bytes>>;

/// Who may read metrics and the debug page.
#[derive(Clone)]
pub enum Readers {
    /// Whoever can connect: for loopback.
    Anybody,
    /// Over TLS, those with a token whom the API server allows to get the path. Needs the right to
    /// create token reviews and subject access reviews.
    Reviewed(kube::Client),
}

/// A server of a running operator. Dropped, it ends.
#[must_use = "dropping a server ends it"]
pub struct Endpoint {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Endpoint {
    /// Serves `/healthz` (the process answers) and `/readyz` (every cache is synced).
    pub async fn probes(address: SocketAddr, debug: DebugInfo) -> Result<Self> {
        Self::serve(address, None, move |request| {
            std::future::ready(probe(&debug, request.uri().path()))
        })
        .await
    }

    /// Serves `/metrics` and `/debug/windlass`.
    pub async fn metrics(address: SocketAddr, debug: DebugInfo, readers: Readers) -> Result<Self> {
        let (access, tls) = match readers {
            Readers::Anybody => (None, None),
            Readers::Reviewed(client) => (Some(Arc::new(Access::new(client))), Some(tls::own()?)),
        };
        Self::serve(address, tls, move |request| {
            let (debug, access) = (debug.clone(), access.clone());
            async move {
                if let Some(access) = access
                    && let Err(refusal) = access.check(&request).await
                {
                    return *refusal;
                }
                page(&debug, request.uri().path())
            }
        })
        .await
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    async fn serve<F, Fut>(
        address: SocketAddr,
        tls: Option<tokio_rustls::TlsAcceptor>,
        answer: F,
    ) -> Result<Self>
    where
        F: Fn(Request<Incoming>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        let refused = |error| Error::other(format!("cannot listen on {address}: {error}"));
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(listen::serve(listener, tls, move |request| {
            let answered = (request.method() == Method::GET).then(|| answer(request));
            async move {
                match answered {
                    Some(answered) => answered.await,
                    None => text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n"),
                }
            }
        }));
        Ok(Self {
            address,
            _tasks: tasks,
        })
    }
}

fn probe(debug: &DebugInfo, path: &str) -> Answer {
    match path {
        "/healthz" => text(StatusCode::OK, "ok"),
        "/readyz" => {
            let (missing, stalled) = (debug.unsynced(), debug.stalled());
            if missing.is_empty() && stalled.is_empty() {
                return text(StatusCode::OK, "ok");
            }
            let missing = missing
                .iter()
                .map(|kind| format!("waiting for cache to sync: {kind}\n"));
            let stalled = stalled.iter().map(|kind| format!("watch fails: {kind}\n"));
            let why: String = missing.chain(stalled).collect();
            text(StatusCode::INTERNAL_SERVER_ERROR, why)
        }
        _ => text(StatusCode::NOT_FOUND, "not found\n"),
    }
}

fn page(debug: &DebugInfo, path: &str) -> Answer {
    match path {
        "/metrics" => typed(
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            debug.metrics().text(),
        ),
        "/debug/windlass" => typed("application/json", format!("{:#}\n", debug.value())),
        _ => text(StatusCode::NOT_FOUND, "not found\n"),
    }
}

fn typed(content_type: &'static str, body: String) -> Answer {
    let mut answer = text(StatusCode::OK, body);
    let value = header::HeaderValue::from_static(content_type);
    answer.headers_mut().insert(header::CONTENT_TYPE, value);
    answer
}

fn text(code: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = code;
    answer
}
