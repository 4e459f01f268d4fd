//! `run`: the operator as a process.
//!
//! In the cluster it serves probes and, to those who may, metrics; takes part in the election; and
//! checks its own rights. On a laptop it does the same on loopback, in the clear and alone, unless
//! told otherwise.

use std::net::SocketAddr;

use clap::Args;
use kube::{Client, Config};
use tokio::{
    runtime::Handle,
    signal::unix::{Signal, SignalKind, signal},
};
use tracing::{error, info, warn};

#[cfg(feature = "webhooks")]
use super::webhooks::Webhooks;
use super::workers::Workers;
use crate::{
    Error, Operator, Result,
    operator::Apart,
    run::{Launch, LeaderElection, Running},
    serve::{Endpoint, Readers},
    testing::Environment,
};

#[derive(Debug, Args)]
pub(super) struct Run {
    /// Write logs as JSON, one object per line.
    #[arg(long)]
    pub(super) log_json: bool,
    /// Run only these of the operator's controllers.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(super) controllers: Vec<String>,
    /// Install the CRDs before anything else, unless that would break what is there. Takes the
    /// right to get, create and patch CRDs, which the generated role does not have.
    #[arg(long)]
    install_crds: bool,
    /// Let one of several replicas write; the others stand by. On in a cluster, off elsewhere.
    #[arg(long, num_args = 0..=1, default_missing_value = "true")]
    leader_elect: Option<bool>,
    /// The namespace of the lease; the operator's own unless told.
    #[arg(long)]
    leader_election_namespace: Option<String>,
    /// Where metrics are served: over TLS to those who may read them in a cluster (0.0.0.0:8443),
    /// on a free port of loopback elsewhere; `0` turns them off.
    #[arg(long)]
    metrics_bind_address: Option<String>,
    /// Where probes are answered: 0.0.0.0:8081 in a cluster, a free port of loopback elsewhere;
    /// `0` turns them off.
    #[arg(long)]
    health_probe_bind_address: Option<String>,
    /// Go through everything and change nothing: every write is sent as a dry run, and the log says
    /// what would change. Webhooks are not served, and the lease is not asked for.
    #[arg(long = "dry-run")]
    rehearse: bool,
    #[cfg(feature = "webhooks")]
    #[command(flatten)]
    webhooks: Webhooks,
}

/// Runs until SIGTERM or SIGINT, then stops gracefully; a second signal ends it at once.
///
/// This thread has the signals, the lease, probes and metrics; reconciles have threads of their own,
/// so that none of them can cost the lease, however long it blocks its thread.
pub(super) async fn run(operator: &Operator, options: &Run) -> Result<()> {
    let workers = Workers::start()?;
    let listen = |kind| signal(kind).map_err(Error::other);
    let mut terminate: Signal = listen(SignalKind::terminate())?;
    let mut interrupt: Signal = listen(SignalKind::interrupt())?;
    let in_cluster = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let mut config = Config::infer().await.map_err(Error::other)?;
    // The queue retries, and each attempt passes the lease anew.
    config.default_retry = false;
    let host = config.cluster_url.host().unwrap_or_default().to_owned();
    let environment = Environment {
        #[cfg(feature = "webhooks")]
        webhooks: options.webhooks.serving(&config, in_cluster),
        ..Environment::default()
    };
    let client_here = Client::try_from(config.clone())?;
    let leader_election = options.leader_elect.unwrap_or(in_cluster).then(|| {
        let namespace = options.leader_election_namespace.clone();
        let namespace = namespace.unwrap_or_else(|| client_here.default_namespace().to_owned());
        LeaderElection::new(namespace, operator.name(), identity(&environment))
    });
    if options.install_crds && !options.rehearse {
        for line in operator.install(&client_here, false).await? {
            info!("{line}");
        }
    }
    let launch = Launch {
        leader_election,
        host,
        dry_run: options.rehearse,
    };
    let apart = Apart {
        runtime: Handle::current(),
        client: client_here.clone(),
    };
    // Caches fill while the servers start; nobody is told "ready" before they have.
    let (client, running) = {
        let _workers = workers.handle().enter();
        let client = Client::try_from(config)?;
        let running = operator.launch_beside(client.clone(), environment, launch, Some(apart));
        (client, running)
    };
    let _endpoints = endpoints(&running, &client_here, options, in_cluster).await?;
    let check = check_rights(operator, &client);
    let watch = workers.watch(running.debug());
    tokio::pin!(check, watch);
    let mut checked = false;
    loop {
        tokio::select! {
            biased;
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            () = running.lost() => {
                return Err(Error::other("lost the lease; another replica may lead now"));
            }
            () = &mut watch => {}
            () = &mut check, if !checked => checked = true,
        }
    }
    info!("stopping; a second signal ends it at once");
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = running.stop() => {}
    }
    Ok(())
}

async fn endpoints(
    running: &Running,
    client: &Client,
    options: &Run,
    in_cluster: bool,
) -> Result<Vec<Endpoint>> {
    let place = |given: Option<&str>, port: u16| -> Result<Option<SocketAddr>> {
        match given {
            Some("0") => Ok(None),
            Some(address) => {
                // Go's form for every interface is a port after a colon.
                let address = match address.strip_prefix(':') {
                    Some(port) => format!("0.0.0.0:{port}"),
                    None => address.to_owned(),
                };
                let parsed = address.parse();
                parsed
                    .map(Some)
                    .map_err(|_| Error::other(format!("{address} is not an address to listen on")))
            }
            None if in_cluster => Ok(Some(([0, 0, 0, 0], port).into())),
            None => Ok(Some(([127, 0, 0, 1], 0).into())),
        }
    };
    let mut endpoints = Vec::new();
    if let Some(address) = place(options.health_probe_bind_address.as_deref(), 8081)? {
        let probes = Endpoint::probes(address, running.debug()).await?;
        info!(address = %probes.address(), "answering /healthz and /readyz");
        endpoints.push(probes);
    }
    if let Some(address) = place(options.metrics_bind_address.as_deref(), 8443)? {
        let loopback = address.ip().is_loopback();
        let readers = if loopback {
            Readers::Anybody
        } else {
            Readers::Reviewed(client.clone())
        };
        let metrics = Endpoint::metrics(address, running.debug(), readers).await?;
        let scheme = if loopback { "http" } else { "https" };
        info!(
            "serving {scheme}://{}/metrics and /debug/windlass",
            metrics.address()
        );
        endpoints.push(metrics);
    }
    Ok(endpoints)
}

/// Names everything the operator may not do but needs to, at once.
async fn check_rights(operator: &Operator, client: &Client) {
    match operator.missing_rights(client).await {
        Ok(missing) if missing.is_empty() => {}
        Ok(missing) => error!(
            "the API server does not allow this operator to {}; apply the role that `{} rbac` prints",
            missing.join(", "),
            operator.name()
        ),
        Err(error) => warn!(%error, "cannot check what this operator may do"),
    }
}

/// Which replica this is: the pod's name, and something that a restart changes.
fn identity(environment: &Environment) -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "local".to_owned());
    format!("{host}_{}", environment.random.suffix(10))
}
