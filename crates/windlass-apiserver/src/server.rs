//! The server as a value: what it holds, how it is made, and how it is reached without a socket.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};

use crate::auth::rbac::Rbac;
use crate::auth::{Accounts, Identity, SigningKey};
use crate::clock::Clock;
use crate::http::{Body, ResourceRequest};
use crate::node::NodeClient;
use crate::random::Random;
use crate::registry::Registry;
use crate::services::ServiceRange;
use crate::status::ApiError;
use crate::store::Store;
use crate::webhook::{TlsTransport, WebhookTransport};

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Status code of the answer.
    pub code: StatusCode,
    /// Whether it was a write that succeeded.
    pub wrote: bool,
}

/// What a hook may do to a request.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Let it through.
    Pass,
    /// Answer with this code and message, applying nothing.
    Fail(StatusCode, String),
}

type HookFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The edges of the server, where a test delays, fails or counts requests.
pub trait Hooks: Send + Sync {
    /// Before a request is applied.
    fn before<'a>(
        &'a self,
        _who: &'a Identity,
        _request: &'a ResourceRequest,
    ) -> HookFuture<'a, Verdict> {
        Box::pin(std::future::ready(Verdict::Pass))
    }

    /// After it was applied and before the client hears of it. A future that never ends is a client that died.
    fn after<'a>(
        &'a self,
        _who: &'a Identity,
        _request: &'a ResourceRequest,
        _outcome: Outcome,
    ) -> HookFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Before the events of a watch are delivered to `who`.
    fn deliver<'a>(
        &'a self,
        _who: &'a Identity,
        _watch: &'a ResourceRequest,
    ) -> HookFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Ends when the connection of a watch is to break; by default it never does.
    fn breaks<'a>(&'a self, _who: &'a Identity, _watch: &'a ResourceRequest) -> HookFuture<'a, ()> {
        Box::pin(std::future::pending())
    }
}

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
    /// What watches the server's edges.
    pub hooks: Option<Arc<dyn Hooks>>,
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
            hooks: None,
            webhooks: Arc::new(TlsTransport::default()),
        }
    }
}

/// An API server. Clones share everything.
#[derive(Clone)]
pub struct ApiServer(Arc<Inner>);

struct Inner {
    store: Store,
    registry: Registry,
    accounts: Accounts,
    rbac: Rbac,
    config: Config,
}

impl ApiServer {
    /// A server with nothing stored but the namespaces and roles every cluster has.
    pub fn new(config: Config) -> Self {
        let server = Self(Arc::new(Inner {
            store: Store::new(),
            registry: Registry::built_in(),
            accounts: Accounts::new(config.service_account_key.clone()),
            rbac: Rbac::new(crate::bootstrap::policy()),
            config,
        }));
        crate::bootstrap::run(&server);
        server
    }

    /// The server without a socket, as seen by `identity`: a [`tower::Service`] for `kube::Client::new`.
    pub fn in_process(&self, identity: Identity) -> InProcess {
        InProcess {
            server: self.clone(),
            identity: Some(Arc::new(identity)),
        }
    }

    /// The same for a caller who must bring a token, or is anonymous.
    pub fn in_process_unauthenticated(&self) -> InProcess {
        InProcess {
            server: self.clone(),
            identity: None,
        }
    }

    /// The revision of the latest write.
    pub fn revision(&self) -> u64 {
        self.0.store.revision()
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

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.config.clock
    }

    pub(crate) fn random(&self) -> &Random {
        &self.0.config.random
    }

    pub(crate) fn service_range(&self) -> ServiceRange {
        self.0.config.service_range
    }

    pub(crate) fn nodes(&self) -> Option<&NodeClient> {
        self.0.config.nodes.as_ref()
    }

    pub(crate) fn hooks(&self) -> Option<&Arc<dyn Hooks>> {
        self.0.config.hooks.as_ref()
    }

    pub(crate) fn webhooks(&self) -> &dyn WebhookTransport {
        self.0.config.webhooks.as_ref()
    }

    pub(crate) async fn before(
        &self,
        who: &Identity,
        request: &ResourceRequest,
    ) -> Option<ApiError> {
        match self.hooks()?.before(who, request).await {
            Verdict::Pass => None,
            Verdict::Fail(code, message) => Some(ApiError::new(code, reason_of(code), message)),
        }
    }

    pub(crate) async fn after(&self, who: &Identity, request: &ResourceRequest, outcome: Outcome) {
        if let Some(hooks) = self.hooks() {
            hooks.after(who, request, outcome).await;
        }
    }
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
    identity: Option<Arc<Identity>>,
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let client = self.clone();
        Box::pin(async move {
            Ok(client
                .server
                .handle(request, client.identity.as_ref())
                .await)
        })
    }
}
