//! [`WebhookServing`]: where webhooks are served, and how their certificate is kept.

use std::{
    fmt::{self, Debug},
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use tracing::warn;
use windlass_manifests::{Description, webhook};

use super::{
    Router,
    certificate::{Keyed, Lives},
    keeper::Keeper,
    local,
    server::{self, Shown},
};
use crate::{
    Result, cache::Caches, client::Requests, metrics::WebhookMetrics, operator::Signals,
    testing::Environment,
};

/// How the API server reaches an operator's webhooks.
#[derive(Clone, Debug)]
pub enum WebhookServing {
    /// Over TLS, through the Service of the manifests.
    Service {
        /// Where to listen.
        listen: SocketAddr,
        /// The namespace of Service and Secret; that of the client unless told.
        namespace: Option<String>,
        /// Where the certificate comes from.
        certificates: Certificates,
    },
    /// Over TLS at an address of this machine: for a run outside the cluster. The operator
    /// registers itself, and takes itself off when it is stopped.
    Url {
        /// Where to listen; port 0 is any free one.
        listen: SocketAddr,
        /// The name or address the API server reaches this machine by.
        host: String,
    },
    /// By somebody who calls it in this process, such as a test cluster.
    InProcess {
        /// Who calls.
        host: Arc<dyn HostWebhooks>,
        /// The namespace of Service and Secret.
        namespace: String,
    },
}

impl Default for WebhookServing {
    fn default() -> Self {
        Self::Service {
            listen: (Ipv4Addr::UNSPECIFIED, webhook::SERVING_PORT).into(),
            namespace: None,
            certificates: Certificates::Own,
        }
    }
}

/// Where the certificate comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Certificates {
    /// The operator issues it, keeps it in a Secret and renews it.
    #[default]
    Own,
    /// A folder has `tls.crt` and `tls.key`, looked at again every few seconds. With a `ca.crt` in
    /// it the operator tells the API server whom to trust; without, somebody else does.
    Folder(PathBuf),
}

/// Somebody who calls an operator's webhooks in this process.
pub trait HostWebhooks: Send + Sync + Debug {
    /// Serves the operator under the name of its Service; dropping the result takes it away.
    fn host(&self, namespace: &str, service: &str, server: WebhookServer) -> Box<dyn Send + Sync>;
}

/// An operator's webhooks, to be called in this process.
#[derive(Clone)]
pub struct WebhookServer {
    router: Arc<Router>,
    shown: Arc<Shown>,
}

impl Debug for WebhookServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookServer")
    }
}

impl WebhookServer {
    /// Answers a POST: an HTTP status and a body.
    pub async fn answer(&self, path_and_query: &str, body: &[u8]) -> (u16, Vec<u8>) {
        self.router.answer(path_and_query, body).await
    }

    /// The certificate chain (DER) that it would show now; none while it has no certificate.
    pub fn certificates(&self) -> Vec<Vec<u8>> {
        let chain = self.shown.chain();
        chain.iter().map(|one| one.as_ref().to_vec()).collect()
    }
}

/// What serving takes from a running operator.
pub(crate) struct Serving {
    pub(crate) description: Arc<Description>,
    pub(crate) lives: Lives,
    pub(crate) router: Arc<Router>,
    pub(crate) caches: Arc<Caches>,
    pub(crate) requests: Requests,
    pub(crate) environment: Environment,
    pub(crate) signals: Signals,
    pub(crate) metrics: WebhookMetrics,
}

impl Serving {
    /// The namespace of Service and Secret.
    pub(crate) fn namespace(&self) -> String {
        match &self.environment.webhooks {
            WebhookServing::Service {
                namespace: Some(namespace),
                ..
            }
            | WebhookServing::InProcess { namespace, .. } => namespace.clone(),
            _ => self.requests.client.default_namespace().to_owned(),
        }
    }

    /// The watches that keep the certificate current: asked for before watches start.
    pub(crate) fn keeper(self: &Arc<Self>) -> Option<Keeper> {
        let folder = match &self.environment.webhooks {
            WebhookServing::Service {
                certificates: Certificates::Folder(folder),
                ..
            } => Some(folder.clone()),
            WebhookServing::Service { .. } | WebhookServing::InProcess { .. } => None,
            WebhookServing::Url { .. } => return None,
        };
        Some(Keeper::new(self, folder))
    }

    /// Serves until the operator stops.
    pub(crate) async fn run(self: Arc<Self>, keeper: Option<Keeper>) {
        let signals = self.signals.clone();
        if let Err(error) = self.serve(keeper, &signals).await {
            warn!(%error, "webhooks are not served");
        }
    }

    async fn serve(self: Arc<Self>, keeper: Option<Keeper>, signals: &Signals) -> Result<()> {
        let stopping = &signals.stopping;
        let shown = Arc::new(Shown::new(self.metrics.clone()));
        let router = Arc::clone(&self.router);
        let keep = async {
            match keeper {
                Some(keeper) => keeper.run(&shown).await,
                None => std::future::pending().await,
            }
        };
        match &self.environment.webhooks {
            WebhookServing::Service {
                listen,
                certificates,
                ..
            } => {
                let listener = server::listen(*listen).await?;
                let folder = async {
                    match certificates {
                        Certificates::Folder(folder) => local::follow(folder, &shown).await,
                        Certificates::Own => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    () = stopping.cancelled() => {}
                    () = keep => {}
                    () = folder => {}
                    () = server::serve(listener, router, Arc::clone(&shown)) => {}
                }
            }
            WebhookServing::InProcess { host, namespace } => {
                let service = webhook::service_name(&self.description.name);
                let server = WebhookServer {
                    router,
                    shown: Arc::clone(&shown),
                };
                let _hosted = host.host(namespace, &service, server);
                tokio::select! {
                    biased;
                    () = stopping.cancelled() => {}
                    () = keep => {}
                }
            }
            WebhookServing::Url { listen, host } => {
                let listener = server::listen(*listen).await?;
                let port = listener.local_addr().map_or(listen.port(), |at| at.port());
                let registration = local::Registration::new(&self, host, port)?;
                shown.set(registration.serving())?;
                let serving = server::serve(listener, router, Arc::clone(&shown));
                tokio::select! {
                    biased;
                    () = registered(&registration, signals) => {}
                    () = serving => {}
                }
            }
        }
        Ok(())
    }
}

/// Registers once this replica may write, waits for the end, and takes the registration off again.
async fn registered(registration: &local::Registration<'_>, signals: &Signals) {
    tokio::select! {
        biased;
        () = signals.stopping.cancelled() => return,
        () = signals.leading.cancelled() => {}
    }
    if let Err(error) = registration.add().await {
        warn!(%error, "the API server does not know of this operator's webhooks");
    }
    signals.stopping.cancelled().await;
    if let Err(error) = registration.remove().await {
        warn!(%error, "the API server still knows of this operator's webhooks");
    }
}

/// A certificate as it lies in a folder.
pub(super) fn keyed(certificate: String, key: String) -> Keyed {
    Keyed { certificate, key }
}
