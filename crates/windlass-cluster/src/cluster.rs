//! The cluster behind `windlass up`: an API server on a port, and operators in its process.
//!
//! Clients and pods speak HTTPS to it. What runs in the same process reaches it without a socket,
//! as itself and with exactly its own role: an event that a controller does not care about costs
//! no encryption and no system call.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;
use windlass::{Operator, run::Running, testing::Environment};
use windlass_apiserver::http::{Serving, TlsConfig};
use windlass_apiserver::pki::Authority;
use windlass_apiserver::webhook::{LocalWebhooks, TlsTransport};
use windlass_apiserver::{ApiServer, Identity, NodeClient, StorageError};
use windlass_node::fault::Faults;
use windlass_node::image::ImageTable;
use windlass_node::process::{NodeError, Tls};
use windlass_workloads::{LocalVolumes, WorkloadsConfig};

use crate::credentials::{self, CredentialsError};
use crate::folder::{FolderError, FolderLock};
use crate::kubeconfig::kubeconfig;
use crate::node::{self, Ground, NodeParts};
use crate::operators::{self, Account};
use crate::runtime::{Choice, Runtime, RuntimeError};
use crate::webhooks;

/// Where the volumes of claims are, in the data folder.
const VOLUME_FOLDER: &str = "volumes";
/// Where the API server keeps its objects, in the data folder.
const STORE_FOLDER: &str = "store";
/// The namespace of a client that names none.
const DEFAULT_NAMESPACE: &str = "default";

/// What a cluster is made from.
#[derive(Debug)]
pub struct ClusterConfig {
    /// Where objects, certificates, logs and the node's state are kept. One cluster uses it at a time.
    pub data_dir: PathBuf,
    /// Where the API server listens; port 0 is any free one.
    pub listen: SocketAddr,
    /// What else its certificate is for, besides `localhost` and that address: host names and
    /// addresses by which clients of other machines reach it.
    pub names: Vec<String>,
    /// Whether objects are kept in memory alone, and gone with the cluster.
    pub in_memory: bool,
    /// Whether controllers run. Without them objects are what their writers say they are, and a pod
    /// needs no `ServiceAccount`, which no controller would make.
    pub controllers: bool,
    /// The node; `None` starts none.
    pub node: Option<NodeSettings>,
}

/// What the node of a cluster is made from.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// Its name.
    pub name: String,
    /// What runs its pods; `None` is the strongest that the machine allows.
    pub runtime: Option<Runtime>,
    /// Which programs stand for which images.
    pub images: ImageTable,
    /// How this program is called to become the shim of a pod, without the subcommand.
    pub shim: Vec<OsString>,
}

impl NodeSettings {
    /// A node with the default images, whose shims are this program: called with
    /// [`SUBCOMMAND`](crate::shim::SUBCOMMAND) and a folder it must do nothing but
    /// [`main`](crate::shim::main), and with [`HOLDER`](crate::shim::HOLDER)
    /// [`hold_processes`](crate::shim::hold_processes). Pods outlive a program that is killed, and a
    /// [`Cluster`] that is dropped: [`clean_up`] ends them.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            runtime: None,
            images: ImageTable::default(),
            // By its process, so that it is found even after a newer one has taken its place.
            shim: vec![format!("/proc/{}/exe", std::process::id()).into()],
        }
    }
}

/// Why a cluster did not start.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The port cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The webhooks of an operator do not come up.
    #[error("the webhooks of {0} did not come up within half a minute; its log says why")]
    Webhooks(String),
    /// The data folder is not to be had.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// What is stored there cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Certificates cannot be made, kept or used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(io::Error),
    /// The node cannot be made.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The runtime asked for cannot be had.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The network of the pods cannot be made.
    #[error("cannot make the network of the pods: {0}")]
    Network(io::Error),
    /// The API server refused something it should not have.
    #[error("cannot {what}: {source}")]
    Api {
        /// What was being done.
        what: String,
        /// The answer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A running cluster. Dropping it ends it at once and leaves its pods to the next one in the same
/// folder; [`Cluster::stop`] ends them first.
pub struct Cluster {
    server: ApiServer,
    serving: Serving,
    authority: Authority,
    webhooks: LocalWebhooks,
    admin: Kubeconfig,
    /// Where pods reach the API server, if it is another place.
    for_pods: Option<Serving>,
    /// What the node stands on; without a node, none.
    ground: Option<Ground>,
    faults: Faults,
    /// In the order they were started; stopped the other way round.
    running: Vec<Running>,
    /// Given up last.
    _lock: FolderLock,
}

impl Cluster {
    /// Starts API server, controllers and node, and waits until the API server answers.
    pub async fn start(config: ClusterConfig) -> Result<Self, ClusterError> {
        std::fs::create_dir_all(&config.data_dir).map_err(|source| FolderError::Io {
            path: config.data_dir.clone(),
            source,
        })?;
        let lock = FolderLock::take(&config.data_dir)?;
        let ground = match &config.node {
            Some(node) => {
                let choice = Choice::make(node.runtime, &config.data_dir, !config.in_memory)?;
                let ground = Ground::prepare(choice, &config.data_dir).await;
                Some(ground.map_err(ClusterError::Network)?)
            }
            None => None,
        };
        let folder = config.data_dir.join("pki");
        let authority = credentials::authority(&folder)?;
        let ca = authority.pem().certificate.clone();
        let listener =
            TcpListener::bind(config.listen)
                .await
                .map_err(|source| ClusterError::Listen {
                    address: config.listen,
                    source,
                })?;
        let address = listener
            .local_addr()
            .map_err(|source| ClusterError::Listen {
                address: config.listen,
                source,
            })?;
        let mut names = vec![
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ];
        let mut addresses = vec![IpAddr::from(Ipv4Addr::LOCALHOST), address.ip()];
        for name in &config.names {
            match name.parse() {
                Ok(address) => addresses.push(address),
                Err(_) => names.push(name),
            }
        }
        addresses.extend(ground.iter().flat_map(Ground::addresses));
        let second = match &ground {
            Some(ground) => ground
                .listen(address)
                .await
                .map_err(ClusterError::Network)?,
            None => None,
        };
        let serving = authority
            .server("kube-apiserver", &addresses, &names)
            .map_err(CredentialsError::from)?;
        // Only the API server may ask a node for logs: its certificate has an authority of its own.
        let node_clients = Authority::create().map_err(CredentialsError::from)?;
        let to_nodes = node_clients
            .client("kube-apiserver-kubelet-client", "system:masters")
            .map_err(CredentialsError::from)?;
        // Operators that run in this process are called in it; everybody else over TLS.
        let webhooks = LocalWebhooks::new(windlass_apiserver::Clock::system())
            .or_else(Arc::new(TlsTransport::default()));
        let settings = windlass_apiserver::Config {
            webhooks: Arc::new(webhooks.clone()),
            nodes: Some(NodeClient::new(&to_nodes, &ca).map_err(ClusterError::Tls)?),
            service_account_key: Some(credentials::signing_key(&folder)?),
            service_account_admission: config.controllers,
            service_range: ground.as_ref().map(Ground::services).unwrap_or_default(),
            ..windlass_apiserver::Config::default()
        };
        let server = if config.in_memory {
            ApiServer::new(settings)
        } else {
            ApiServer::open(settings, &config.data_dir.join(STORE_FOLDER))?
        };
        let tls = TlsConfig {
            serving,
            client_ca: ca.clone(),
        };
        let for_pods = match second {
            Some(listener) => Some(server.serve(listener, &tls).map_err(ClusterError::Tls)?),
            None => None,
        };
        let serving = server.serve(listener, &tls).map_err(ClusterError::Tls)?;
        let admin_identity = credentials::client(
            &folder,
            &authority,
            "admin",
            "kubernetes-admin",
            "system:masters",
        )?;
        let admin = kubeconfig(
            &format!("https://{}", reachable(address)),
            &ca,
            &admin_identity,
        );
        let mut cluster = Self {
            server,
            serving,
            authority,
            webhooks,
            admin,
            for_pods,
            ground,
            faults: Faults::default(),
            running: Vec::new(),
            _lock: lock,
        };
        if config.controllers {
            let workloads = windlass_workloads::operator(WorkloadsConfig {
                root_ca: Some(ca.clone()),
                // Without a node no volume is used.
                local_volumes: config.node.as_ref().map(|_| LocalVolumes {
                    folder: volume_folder(&config.data_dir),
                    remove: |folder| std::fs::remove_dir_all(folder),
                }),
            });
            let account = Account::of_system(&workloads);
            cluster.run_as(&workloads, &account).await?;
        }
        if let Some(settings) = config.node {
            let client_ca = node_clients.pem().certificate.clone();
            cluster
                .start_node(settings, config.data_dir, client_ca)
                .await?;
        }
        Ok(cluster)
    }

    /// Starts the node on its ground.
    async fn start_node(
        &mut self,
        settings: NodeSettings,
        data_dir: PathBuf,
        client_ca: String,
    ) -> Result<(), ClusterError> {
        let Some(ground) = &self.ground else {
            return Ok(());
        };
        let user = format!("system:node:{}", settings.name);
        let names = [settings.name.as_str()];
        let serving = self
            .authority
            .server(&user, &ground.node_addresses(), &names)
            .map_err(CredentialsError::from)?;
        let operator = ground.operator(NodeParts {
            name: settings.name.clone(),
            data_dir,
            tls: Tls {
                certificate: serving.certificate,
                key: serving.key,
                client_ca,
            },
            images: settings.images,
            shim: settings.shim,
            faults: self.faults.clone(),
            api_server: reachable(self.serving.address),
        })?;
        let advertised = self.for_pods.as_ref().unwrap_or(&self.serving).address;
        if !reachable(advertised).ip().is_loopback() {
            node::publish(&self.in_process(Identity::admin()), advertised)
                .await
                .map_err(|source| ClusterError::Api {
                    what: "say where the API server is".to_owned(),
                    source: source.into(),
                })?;
        }
        self.run_node(&operator, &user).await
    }

    /// What runs pods, and why; none when nothing does.
    pub fn runtime(&self) -> Option<&Choice> {
        self.ground.as_ref().map(|ground| &ground.choice)
    }

    /// The range of the pods' addresses.
    pub fn pod_range(&self) -> Option<String> {
        let ground = self.ground.as_ref()?;
        let range = ground.bridge.as_ref().map(|bridge| bridge.pods.to_string());
        Some(range.unwrap_or_else(|| "127.64.0.0/10".to_owned()))
    }

    /// Installs an operator's kinds and runs it, as its own `ServiceAccount` with its own role.
    pub async fn run_operator(&mut self, operator: &Operator) -> Result<(), ClusterError> {
        operators::install(&self.in_process(Identity::admin()), operator)
            .await
            .map_err(|source| ClusterError::Api {
                what: format!("install the kinds of {}", operator.name()),
                source: source.into(),
            })?;
        self.run_as(operator, &Account::of(operator)).await
    }

    /// Runs an operator as its account.
    async fn run_as(&mut self, operator: &Operator, account: &Account) -> Result<(), ClusterError> {
        let client = self.in_process(Identity::admin());
        operators::admit(&client, operator, account)
            .await
            .map_err(|source| ClusterError::Api {
                what: format!("give {} its role", operator.name()),
                source: source.into(),
            })?;
        let (webhooks, served) = webhooks::serving(&self.webhooks, &account.namespace);
        let environment = Environment {
            webhooks,
            ..Environment::default()
        };
        self.run(operator, account.identity(), environment).await;
        let answered = webhooks::answer(&client, &operator.description(), &served).await;
        let answered = answered.map_err(|source| ClusterError::Api {
            what: format!("look at the webhooks of {}", operator.name()),
            source: source.into(),
        })?;
        if answered {
            Ok(())
        } else {
            Err(ClusterError::Webhooks(operator.name().to_owned()))
        }
    }

    /// Runs the node as the user that it is in every cluster.
    async fn run_node(&mut self, operator: &Operator, user: &str) -> Result<(), ClusterError> {
        operators::admit_user(&self.in_process(Identity::admin()), operator, user)
            .await
            .map_err(|source| ClusterError::Api {
                what: format!("give {user} its role"),
                source: source.into(),
            })?;
        let identity = Identity::new(user, ["system:nodes".to_owned()]);
        self.run(operator, identity, Environment::default()).await;
        Ok(())
    }

    async fn run(&mut self, operator: &Operator, identity: Identity, environment: Environment) {
        let running = operator.start(self.in_process(identity), environment);
        running.synced().await;
        self.running.push(running);
    }

    /// A client in this process.
    fn in_process(&self, identity: Identity) -> Client {
        let service = self.server.in_process(identity).beside_sockets();
        Client::new(service, DEFAULT_NAMESPACE)
    }

    /// Where the API server is.
    pub fn address(&self) -> String {
        format!("https://{}", reachable(self.serving.address))
    }

    /// What a test can do to the node.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Kubeconfig {
        &self.admin
    }

    /// A client with the administrator's rights.
    pub async fn client(&self) -> Result<Client, ClusterError> {
        connect(self.admin.clone()).await
    }

    /// Stops operators, then the node with its pods, then controllers and API server.
    pub async fn stop(mut self) {
        while let Some(running) = self.running.pop() {
            running.stop().await;
        }
        self.serving.stop().await;
        if let Some(serving) = self.for_pods.take() {
            serving.stop().await;
        }
        if let Some(ground) = &self.ground {
            ground.remove().await;
        }
    }
}

/// An address to connect to, of one that is listened on: everywhere is also here.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()))
    } else {
        address
    }
}

/// Ends what a cluster that was killed left running. The cluster itself must not run.
pub async fn clean_up(data_dir: &Path) -> io::Result<()> {
    node::clean_up(data_dir).await
}

async fn connect(kubeconfig: Kubeconfig) -> Result<Client, ClusterError> {
    let refused = |source: Box<dyn std::error::Error + Send + Sync>| ClusterError::Api {
        what: "make a client of the API server".to_owned(),
        source,
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| refused(error.into()))?;
    Client::try_from(config).map_err(|error| refused(error.into()))
}

/// Where local volumes are. Volumes are found by their paths from anywhere.
fn volume_folder(data_dir: &Path) -> PathBuf {
    let folder = data_dir.join(VOLUME_FOLDER);
    std::path::absolute(&folder).unwrap_or(folder)
}
