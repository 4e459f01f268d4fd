//! The server as a value: what it holds, how it is made, and how it is reached without a socket.

pub(crate) mod bootstrap;
pub(crate) mod restore;
mod snapshot;

pub use snapshot::Snapshot;

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};

use crate::admission::quota::QuotaLock;
use crate::auth::rbac::{self, Rbac};
use crate::auth::{Accounts, Identity, Presented, SigningKey, account};
use crate::clock::Clock;
use crate::hooks::{ConnectionReset, Hooks, Outcome, Reply, Verdict};
use crate::http::{Aside, Body, ResourceRequest, Room};
use crate::kinds::core::service::allocation::{Allocations, ServiceRange};
use crate::node::NodeClient;
use crate::openapi::Documents;
use crate::policy::Policies;
use crate::random::Random;
use crate::registry::Registry;
use crate::status::ApiError;
use crate::store::{StorageError, Store};
use crate::webhook::{Hooks as WebhookHooks, TlsTransport, WebhookTransport};

/// Where pods reach it, and what it calls itself when it has no address of its own.
const SERVICE: &str = "kubernetes.default.svc.cluster.local";

/// What a server is made from.
pub struct Config {
    /// Where timestamps come from.
    pub clock: Clock,
    /// Where uids and generated names come from.
    pub random: Random,
    /// Where `ClusterIPs` come from.
    pub service_range: ServiceRange,
    /// How nodes are reached for logs; `None` answers that they are not.
    pub nodes: Option<NodeClient>,
    /// What signs tokens of `ServiceAccount`s; `None` makes a key that only this server has.
    pub service_account_key: Option<SigningKey>,
    /// The issuer of those tokens: a URL, which is their audience by default.
    pub issuer: String,
    /// Whether a new pod needs the `ServiceAccount` it runs as, and is given its token: what
    /// kube-apiserver's admission plug-in of that name does.
    pub service_account_admission: bool,
    /// How long events are kept after they were written last.
    pub event_ttl: Duration,
    /// How long a list of the past can be read, at least: the next pages of a list, and what asks
    /// for an exact version.
    pub compaction_interval: Duration,
    /// How long a watch lasts that does not say so: this long at least, twice as long at most.
    pub min_request_timeout: Duration,
    /// What watches the server's edges.
    pub hooks: Option<Arc<dyn Hooks>>,
    /// How many requests that only read are served at a time; 0 is any number.
    pub max_requests_in_flight: usize,
    /// How many that write.
    pub max_mutating_requests_in_flight: usize,
    /// How many connections are open at a time; `None` leaves the process some of its files.
    pub max_connections: Option<usize>,
    /// How webhooks are reached.
    pub webhooks: Arc<dyn WebhookTransport>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            clock: Clock::system(),
            random: Random::from_system(),
            service_range: ServiceRange::default(),
            nodes: None,
            service_account_key: None,
            issuer: account::ISSUER.to_owned(),
            service_account_admission: true,
            event_ttl: crate::kinds::events::form::TTL,
            compaction_interval: Duration::from_mins(5),
            min_request_timeout: Duration::from_mins(30),
            hooks: None,
            max_requests_in_flight: 400,
            max_mutating_requests_in_flight: 200,
            max_connections: None,
            webhooks: Arc::new(TlsTransport::default()),
        }
    }
}

/// An API server. Clones share everything.
#[derive(Clone)]
pub struct ApiServer(Arc<Inner>);

/// A server that may be gone.
pub(crate) struct WeakServer(std::sync::Weak<Inner>);

impl WeakServer {
    pub(crate) fn upgrade(&self) -> Option<ApiServer> {
        self.0.upgrade().map(ApiServer)
    }
}

struct Inner {
    store: Store,
    registry: Registry,
    accounts: Accounts,
    rbac: Rbac,
    allocations: Allocations,
    openapi: Documents,
    room: Room,
    webhooks: WebhookHooks,
    /// How many watches hooks were shown.
    watches: AtomicU64,
    policies: Policies,
    quota_lock: QuotaLock,
    /// Where it was served first.
    address: OnceLock<SocketAddr>,
    config: Config,
}

impl ApiServer {
    /// A server with nothing stored but the namespaces and roles every cluster has, in memory.
    pub fn new(config: Config) -> Self {
        let store = Store::new(config.compaction_interval);
        let server = Self::with_store(config, store, crate::server::bootstrap::policy());
        crate::server::bootstrap::run(&server);
        server
    }

    /// A server that keeps what it stores in `folder`, and has what was kept there. Whatever it
    /// acknowledges is durable. The folder must be used by one server at a time.
    pub fn open(config: Config, folder: &Path) -> Result<Self, StorageError> {
        let store = Store::kept_in(folder, config.compaction_interval)?;
        let server = Self::with_store(config, store, crate::server::bootstrap::policy());
        crate::server::bootstrap::run(&server);
        crate::server::restore::run(&server);
        server
            .store()
            .flush()
            .map_err(|lost| StorageError::not_written(folder, &lost.0))?;
        Ok(server)
    }

    /// A server that has nothing but a store.
    pub(crate) fn with_store(config: Config, store: Store, policy: rbac::Policy) -> Self {
        Self(Arc::new(Inner {
            store,
            registry: Registry::built_in(),
            accounts: Accounts::new(config.service_account_key.clone(), config.issuer.clone()),
            rbac: Rbac::new(policy),
            allocations: Allocations::default(),
            openapi: Documents::default(),
            room: Room::new(
                config.max_requests_in_flight,
                config.max_mutating_requests_in_flight,
            ),
            webhooks: WebhookHooks::default(),
            watches: AtomicU64::new(0),
            policies: Policies::default(),
            quota_lock: QuotaLock::default(),
            address: OnceLock::new(),
            config,
        }))
    }

    /// The server without a socket, as seen by `identity`: a [`tower::Service`] for `kube::Client::new`.
    pub fn in_process(&self, identity: Identity) -> InProcess {
        InProcess {
            server: self.clone(),
            presented: Presented::Known(Arc::new(identity)),
            beside_sockets: false,
        }
    }

    /// The same for a caller who must bring a token, or is anonymous.
    pub fn in_process_unauthenticated(&self) -> InProcess {
        InProcess {
            server: self.clone(),
            presented: Presented::Nothing,
            beside_sockets: false,
        }
    }

    /// The same for a caller whose certificate is not of this cluster.
    pub fn in_process_as_stranger(&self) -> InProcess {
        InProcess {
            server: self.clone(),
            presented: Presented::Unknown,
            beside_sockets: false,
        }
    }

    /// The revision of the latest write.
    pub fn revision(&self) -> u64 {
        self.0.store.revision()
    }

    /// Notes where it is served; of several addresses the first counts.
    pub(crate) fn served_at(&self, address: SocketAddr) {
        let _ = self.0.address.set(address);
    }

    /// Where others reach it: a host and a port.
    pub(crate) fn host(&self) -> String {
        let address = self.0.address.get();
        let address = address.filter(|address| !address.ip().is_unspecified());
        address.map_or_else(|| SERVICE.to_owned(), ToString::to_string)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.0.registry
    }

    pub(crate) fn accounts(&self) -> &Accounts {
        &self.0.accounts
    }

    pub(crate) fn rbac(&self) -> &Rbac {
        &self.0.rbac
    }

    pub(crate) fn allocations(&self) -> &Allocations {
        &self.0.allocations
    }

    pub(crate) fn openapi(&self) -> &Documents {
        &self.0.openapi
    }

    pub(crate) fn room(&self) -> &Room {
        &self.0.room
    }

    pub(crate) fn max_connections(&self) -> Option<usize> {
        self.0.config.max_connections
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.config.clock
    }

    pub(crate) fn random(&self) -> &Random {
        &self.0.config.random
    }

    pub(crate) fn min_request_timeout(&self) -> Duration {
        self.0.config.min_request_timeout
    }

    pub(crate) fn service_range(&self) -> ServiceRange {
        self.0.config.service_range
    }

    pub(crate) fn service_account_admission(&self) -> bool {
        self.0.config.service_account_admission
    }

    pub(crate) fn event_ttl(&self) -> std::time::Duration {
        self.0.config.event_ttl
    }

    /// A way back to the server that does not keep it alive.
    pub(crate) fn downgrade(&self) -> WeakServer {
        WeakServer(Arc::downgrade(&self.0))
    }

    pub(crate) fn nodes(&self) -> Option<&NodeClient> {
        self.0.config.nodes.as_ref()
    }

    pub(crate) fn hooks(&self) -> Option<&Arc<dyn Hooks>> {
        self.0.config.hooks.as_ref()
    }

    /// A number for a watch.
    pub(crate) fn next_watch(&self) -> u64 {
        self.0.watches.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn webhooks(&self) -> &dyn WebhookTransport {
        self.0.config.webhooks.as_ref()
    }

    /// The webhooks that are configured.
    pub(crate) fn hooks_configured(&self) -> &WebhookHooks {
        &self.0.webhooks
    }

    /// The admission policies that are in force.
    pub(crate) fn policies(&self) -> &Policies {
        &self.0.policies
    }

    /// What keeps two writes from being counted at once.
    pub(crate) fn quota_lock(&self) -> &QuotaLock {
        &self.0.quota_lock
    }

    /// Asks the hooks whether a request is applied.
    pub(crate) async fn before(&self, who: &Identity, request: &ResourceRequest) -> Verdict {
        match self.hooks() {
            Some(hooks) => hooks.before(who, request).await,
            None => Verdict::Pass,
        }
    }

    /// Asks the hooks whether its answer is sent.
    pub(crate) async fn after(
        &self,
        who: &Identity,
        request: &ResourceRequest,
        outcome: Outcome,
    ) -> Reply {
        match self.hooks() {
            Some(hooks) => hooks.after(who, request, outcome).await,
            None => Reply::Send,
        }
    }
}

/// The error of a request that a hook refuses.
pub(crate) fn refused_by_hook(code: StatusCode, message: String) -> ApiError {
    ApiError::new(code, reason_of(code), message)
}

fn reason_of(code: StatusCode) -> &'static str {
    match code.as_u16() {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    }
}

/// A client's view of the server, without a socket.
#[derive(Clone)]
pub struct InProcess {
    server: ApiServer,
    presented: Presented,
    beside_sockets: bool,
}

impl InProcess {
    /// The same for a client that shares its threads with connections: its long work goes aside, as
    /// theirs does.
    #[must_use]
    pub fn beside_sockets(mut self) -> Self {
        self.beside_sockets = true;
        self
    }
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = ConnectionReset;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let client = self.clone();
        Box::pin(async move {
            let aside = if client.beside_sockets {
                Aside::of_this_runtime()
            } else {
                Aside::never()
            };
            client
                .server
                .handle(request, &client.presented, aside)
                .await
        })
    }
}
