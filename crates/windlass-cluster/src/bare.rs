//! An API server alone, with certificates that others made: what envtest starts.

use std::io;
use std::net::SocketAddr;

use kube::Client;
use tokio::net::TcpListener;
use windlass::{run::Running, testing::Environment};
use windlass_apiserver::http::{Serving, TlsConfig};
use windlass_apiserver::pki::{Authority, KeyedCertificate, PkiError};
use windlass_apiserver::{ApiServer, Identity, ServiceRange, SigningKey};

/// What an API server alone is made from. Texts are PEM.
#[derive(Debug)]
pub struct BareServerConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Its certificate and key; `None` has an authority of its own make one.
    pub serving: Option<(String, String)>,
    /// Who signs the certificates of clients; `None` believes none.
    pub client_ca: Option<String>,
    /// What signs tokens of `ServiceAccount`s; `None` makes a key.
    pub signing_key: Option<String>,
    /// Who signs them; `None` is Kubernetes' usual name.
    pub issuer: Option<String>,
    /// Where `ClusterIPs` come from.
    pub service_range: ServiceRange,
    /// Whether a new pod needs its `ServiceAccount`.
    pub service_account_admission: bool,
    /// Whether the garbage collector runs, and namespaces that are deleted are emptied and end.
    pub removes: bool,
}

/// Why an API server alone did not start.
#[derive(Debug, thiserror::Error)]
pub enum BareServerError {
    /// The port cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// A certificate or key cannot be made or read.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(io::Error),
}

/// An API server without anything around it. Its objects are in memory, and gone with it.
pub struct BareServer {
    serving: Serving,
    removal: Option<Running>,
}

impl BareServer {
    /// Starts it; it answers from now on.
    pub async fn start(config: BareServerConfig) -> Result<Self, BareServerError> {
        let address = config.listen;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| BareServerError::Listen { address, source })?;
        let own = Authority::create()?;
        let serving = match config.serving {
            Some((certificate, key)) => KeyedCertificate { certificate, key },
            None => own.server("kube-apiserver", &[address.ip()], &["localhost"])?,
        };
        let key = config.signing_key.as_deref().map(SigningKey::from_pem);
        let usual = windlass_apiserver::Config::default();
        let server = ApiServer::new(windlass_apiserver::Config {
            service_account_key: key.transpose()?,
            issuer: config.issuer.unwrap_or(usual.issuer),
            service_range: config.service_range,
            service_account_admission: config.service_account_admission,
            ..windlass_apiserver::Config::default()
        });
        let client_ca = config.client_ca;
        let tls = TlsConfig {
            serving,
            client_ca: client_ca.unwrap_or_else(|| own.pem().certificate.clone()),
        };
        let serving = server.serve(listener, &tls).map_err(BareServerError::Tls)?;
        let removal = config.removes.then(|| {
            let client = Client::new(server.in_process(Identity::admin()), "default");
            windlass_workloads::removal_operator().start(client, Environment::default())
        });
        Ok(Self { serving, removal })
    }

    /// Stops it.
    pub async fn stop(self) {
        if let Some(removal) = self.removal {
            removal.stop().await;
        }
        self.serving.stop().await;
    }
}
