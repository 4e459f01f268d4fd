//! The two servers a case can be sent to, each as plain `kube::Client`s, one per identity.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use windlass_apiserver::{
    ApiServer, Clock, Config as ServerConfig, Identity as ServerIdentity, NodeClient, Random,
};

use windlass_apiserver::pki::Authority;
use windlass_apiserver::webhook::{LocalRegistration, LocalWebhooks};

use crate::case::{Identity, Server};
use crate::hooks::{self, Scripted};

/// One server, as each identity sees it.
#[derive(Clone)]
pub(crate) struct Servers {
    admin: Client,
    anonymous: Client,
    stranger: Client,
    /// Where the case's webhook is, its port, and its CA: `{hooks}`, `{port}` and `{ca}`.
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) hooks: Arc<Scripted>,
    _serving: Arc<Option<LocalRegistration>>,
}

impl Servers {
    /// The server a kubeconfig names, over TLS.
    pub(crate) async fn real(kubeconfig: &Path, hooks: Arc<Scripted>) -> Self {
        let (url, ca) = hooks::serve(Arc::clone(&hooks)).await;
        let read = Kubeconfig::read_from(kubeconfig)
            .unwrap_or_else(|error| panic!("reading {}: {error}", kubeconfig.display()));
        let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
            .await
            .unwrap_or_else(|error| panic!("using {}: {error}", kubeconfig.display()));
        // A 504 is an answer to record, not to try again.
        config.default_retry = false;
        let mut anonymous = config.clone();
        anonymous.auth_info = AuthInfo::default();
        let mut stranger = anonymous.clone();
        stranger.auth_info = of_another_cluster();
        let client =
            |config| Client::try_from(config).expect("the kubeconfig's certificates can be used");
        Self {
            admin: client(config),
            anonymous: client(anonymous),
            stranger: client(stranger),
            variables: variables(url, ca),
            hooks,
            _serving: Arc::default(),
        }
    }

    /// Ours, in process.
    pub(crate) fn ours(server: Server, hooks: Arc<Scripted>) -> Self {
        let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
        let webhooks = LocalWebhooks::new(clock);
        let serving = webhooks.serve("127.0.0.1", 9443, Arc::clone(&hooks) as _);
        let ca = Authority::create().expect("a CA");
        // There are no nodes, but a way to them.
        let identity = ca.client("kube-apiserver-kubelet-client", "system:masters");
        let identity = identity.expect("a certificate");
        let nodes = NodeClient::new(&identity, &ca.pem().certificate).expect("a way to nodes");
        let ca = STANDARD.encode(&ca.pem().certificate);
        let url = "https://127.0.0.1:9443".to_owned();
        let mut config = ServerConfig {
            clock,
            webhooks: Arc::new(webhooks),
            random: Random::seeded(1),
            nodes: Some(nodes),
            ..ServerConfig::default()
        };
        if server == Server::Hasty {
            config.compaction_interval = Duration::from_secs(1);
            config.min_request_timeout = Duration::from_secs(1);
            config.event_ttl = Duration::from_secs(2);
        }
        let server = ApiServer::new(config);
        // The real one's administrator is known by a certificate.
        let mut admin = ServerIdentity::admin();
        admin.extra.insert(
            "authentication.kubernetes.io/credential-id".into(),
            vec!["X509SHA256=00".into()],
        );
        Self {
            admin: Client::new(server.in_process(admin), "default"),
            anonymous: Client::new(server.in_process_unauthenticated(), "default"),
            stranger: Client::new(server.in_process_as_stranger(), "default"),
            variables: variables(url, ca),
            hooks,
            _serving: Arc::new(Some(serving)),
        }
    }

    /// Sends one request as somebody.
    pub(crate) async fn send(
        &self,
        identity: Identity,
        request: http::Request<Body>,
    ) -> kube::Result<http::Response<Body>> {
        match identity {
            Identity::Admin => self.admin.send(request).await,
            Identity::Anonymous => self.anonymous.send(request).await,
            Identity::Stranger => self.stranger.send(request).await,
        }
    }
}

fn variables(url: String, ca: String) -> BTreeMap<String, String> {
    let port = url.rsplit(':').next().unwrap_or_default().to_owned();
    let all = [("hooks", url), ("ca", ca), ("port", port)];
    all.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The credentials of an administrator, but of another authority's.
fn of_another_cluster() -> AuthInfo {
    let authority = Authority::create().expect("a CA");
    let keyed = authority
        .client("kubernetes-admin", "system:masters")
        .expect("a certificate");
    AuthInfo {
        client_certificate_data: Some(STANDARD.encode(keyed.certificate)),
        client_key_data: Some(STANDARD.encode(keyed.key).into()),
        ..AuthInfo::default()
    }
}
