//! [`Transport`]: how a hook is reached.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use futures::future::BoxFuture;

use super::{exec, http::Http};

/// One call of a hook.
#[derive(Clone, Debug)]
pub struct Call {
    /// Whom it goes to.
    pub target: Target,
    /// Headers, for a webhook.
    pub headers: Vec<(String, String)>,
    /// The request, as JSON.
    pub body: Vec<u8>,
    /// How long it may take.
    pub timeout: Duration,
}

/// Whom a call goes to.
#[derive(Clone, Debug)]
pub enum Target {
    /// A webhook.
    Webhook {
        /// Its address.
        url: String,
        /// The endpoints of the Service that the host names, if it names one.
        endpoints: Option<Vec<SocketAddr>>,
        /// How TLS is spoken.
        tls: Arc<Tls>,
    },
    /// A program with its arguments.
    Exec(Vec<String>),
}

/// How TLS is spoken with a webhook.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Whose certificates are trusted, as PEM; those of the system, without.
    pub trusted: Option<Vec<u8>>,
    /// The certificate that is shown, and its key, as PEM.
    pub shown: Option<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for Tls {
    /// A private key is in no log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("trusts_own", &self.trusted.is_some())
            .field("shows_certificate", &self.shown.is_some())
            .finish()
    }
}

/// What a hook answers. A program that ended well answers with 200.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers, their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The answer, as JSON.
    pub body: Vec<u8>,
}

/// How a hook is reached. A test has one of its own.
pub trait Transport: Send + Sync + 'static {
    /// Calls a hook. An error says why there is no answer; it has no secrets in it.
    fn call<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Answer, String>>;
}

/// Webhooks over HTTP, and programs.
#[derive(Default)]
pub struct Network {
    http: Http,
}

impl Transport for Network {
    fn call<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<Answer, String>> {
        Box::pin(async move {
            let work = async {
                match &call.target {
                    Target::Webhook {
                        url,
                        endpoints,
                        tls,
                    } => self.http.post(url, endpoints.as_deref(), tls, call).await,
                    Target::Exec(program) => exec::run(program, &call.body).await,
                }
            };
            match tokio::time::timeout(call.timeout, work).await {
                Ok(answer) => answer,
                Err(_) => Err(format!("no answer within {:?}", call.timeout)),
            }
        })
    }
}
