//! How a webhook is reached: a trait, so that a test can call it without a socket.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::StatusCode;

/// Where a webhook is, as its configuration says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebhookTarget {
    /// `https://host[:port]/path`.
    Url(String),
    /// A Service in the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The Service's port.
        port: u16,
        /// Where on it the webhook is.
        path: String,
    },
}

impl WebhookTarget {
    /// Host and port as they stand in the URL, and its path: `None` for a URL that is none.
    pub fn parts(&self) -> Option<(String, u16, String)> {
        match self {
            Self::Url(url) => {
                let uri: http::Uri = url.parse().ok()?;
                let host = uri.host()?.trim_matches(['[', ']']).to_owned();
                Some((host, uri.port_u16().unwrap_or(443), uri.path().to_owned()))
            }
            Self::Service {
                namespace,
                name,
                port,
                path,
            } => {
                let path = if path.is_empty() { "/" } else { path };
                Some((format!("{name}.{namespace}.svc"), *port, path.to_owned()))
            }
        }
    }

    /// The URL as errors show it, without a query.
    pub fn url(&self) -> String {
        match self {
            Self::Url(url) => url.clone(),
            Self::Service {
                namespace,
                name,
                port,
                path,
            } => {
                let slash = if path.starts_with('/') { "" } else { "/" };
                format!("https://{name}.{namespace}.svc:{port}{slash}{path}")
            }
        }
    }
}

/// One call of a webhook.
#[derive(Clone, Debug)]
pub struct WebhookCall {
    /// Where the webhook is, as configured.
    pub target: WebhookTarget,
    /// Where to connect to: host or address, and port.
    pub address: (String, u16),
    /// The name its certificate must be for.
    pub server_name: String,
    /// Path and query of the request.
    pub path_and_query: String,
    /// Who vouches for its certificate, as PEM; empty for what the system trusts.
    pub ca_bundle: Vec<u8>,
    /// The review, as JSON.
    pub body: Bytes,
}

/// What a webhook answered.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The HTTP status.
    pub code: StatusCode,
    /// The media type of the body.
    pub content_type: String,
    /// The body.
    pub body: Bytes,
}

/// Why a webhook could not be reached, in the words of Go's HTTP client.
#[derive(Clone, Debug)]
pub struct TransportError(pub String);

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TransportError {}

/// A way to reach webhooks.
pub trait WebhookTransport: Send + Sync {
    /// Posts a review and reads the answer. The caller gives up after the webhook's own timeout.
    fn post<'a>(
        &'a self,
        call: &'a WebhookCall,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, TransportError>> + Send + 'a>>;

    /// Whether a Service is reached by its name, so that it need not be resolved to an address.
    fn knows_service(&self, _namespace: &str, _name: &str) -> bool {
        false
    }
}
