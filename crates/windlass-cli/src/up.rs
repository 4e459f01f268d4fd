//! `windlass up`.

use std::fs::{self, File};
use std::io::{IsTerminal as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::{Args, ValueEnum};
use rustix::process::{Resource, getrlimit, setrlimit};
use tracing_subscriber::EnvFilter;
use windlass_cluster::{Cluster, ClusterConfig, NodeSettings, Runtime};

use crate::bundled::{Bundled, With};
use crate::error::{Error, Result, at};
use crate::images;
use crate::interrupt::{self, Signals};
use crate::output::Output;
use crate::progress::Step;
use crate::samples;
use crate::state::State;
use crate::status;

/// How long a detached cluster may take to start.
const START_LIMIT: Duration = Duration::from_mins(1);
/// How long one that is not wanted after all may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Start the embedded cluster: an API server, controllers and a node on this machine.
///
/// It is for developing and testing operators, not for production. What is stored in it outlives
/// it: the next `windlass up` with the same data folder goes on from there. `windlass down --purge`
/// removes it.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  windlass up\n  windlass up --with memcached --sample --detach"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Up {
    /// Where the API server listens; port 0 is any free one. Default: the port of last time, or a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Also name this host or address in the API server's certificate; may be repeated
    #[arg(long, value_name = "NAME", value_parser = host)]
    san: Vec<String>,
    /// Where objects, certificates, logs and the node's state are kept; one cluster at a time can use it
    #[arg(long, default_value = ".windlass")]
    data_dir: PathBuf,
    /// Where the kubeconfig is written. Default: `kubeconfig` in the data folder
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Start no node: API server and controllers only
    #[arg(long)]
    no_node: bool,
    /// Run no controllers and no node: objects are what their writers say they are, as with envtest
    #[arg(long, conflicts_with_all = ["runtime", "sample"])]
    no_controllers: bool,
    /// Keep objects in memory alone: they are gone with the cluster
    #[arg(long)]
    in_memory: bool,
    /// What runs pods. Default: sandbox where the machine allows it, process elsewhere
    #[arg(long, value_enum, conflicts_with = "no_node")]
    runtime: Option<RuntimeName>,
    /// Also run these operators; `all` is every one
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    with: Vec<With>,
    /// Also create the samples of those operators, and wait until they run
    #[arg(long, requires = "with")]
    sample: bool,
    /// Return once the cluster runs, and leave it running
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    output: Output,
}

/// What runs pods, as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RuntimeName {
    /// Namespaces, an address on a private bridge, an OCI runtime; needs root
    Sandbox,
    /// Plain child processes; needs nothing
    Process,
}

impl From<RuntimeName> for Runtime {
    fn from(name: RuntimeName) -> Self {
        match name {
            RuntimeName::Sandbox => Self::Sandbox,
            RuntimeName::Process => Self::Process,
        }
    }
}

/// A host name, perhaps with a star for its first part, or an address.
fn host(text: &str) -> std::result::Result<String, String> {
    let is_label = |label: &str| {
        let mut bytes = label.bytes();
        !label.is_empty()
            && label.len() <= 63
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = text.strip_prefix("*.").unwrap_or(text);
    if text.parse::<IpAddr>().is_ok() || (text.len() <= 253 && name.split('.').all(is_label)) {
        Ok(text.to_owned())
    } else {
        Err("it is neither a host name nor an address".to_owned())
    }
}

impl Up {
    pub(crate) async fn run(self) -> Result<()> {
        let private = fs::DirBuilder::new();
        make_private_dir(private, &self.data_dir)?;
        // One that was killed a moment ago still seems to run, and does not answer.
        if let Ok(state) = State::running(&self.data_dir)
            && (status::answers(&state).await || state.is_running())
        {
            if !self.output.is_json() {
                println!(
                    "a cluster runs already from {}, at {}",
                    self.data_dir.display(),
                    state.address
                );
            }
            self.check_operators(&state)?;
            return self.show(&state).await;
        }
        if self.detach {
            self.detach().await
        } else {
            self.foreground().await
        }
    }

    /// A running cluster is not given more operators: it has to be started with them.
    fn check_operators(&self, state: &State) -> Result<()> {
        let missing =
            |bundled: &&Bundled| !state.operators.iter().any(|name| name == bundled.name());
        match self.operators().iter().find(missing) {
            None => Ok(()),
            Some(bundled) => Err(Error::Other(format!(
                "it runs without the {} operator; stop it with `windlass down`, then start it with `--with {}`",
                bundled.name(),
                bundled.name()
            ))),
        }
    }

    /// The operators asked for, each once.
    fn operators(&self) -> Vec<Bundled> {
        let mut operators: Vec<Bundled> = self
            .with
            .iter()
            .flat_map(|with| with.operators())
            .copied()
            .collect();
        operators.sort_unstable();
        operators.dedup();
        operators
    }

    /// Runs the cluster in this process until it is told to stop.
    async fn foreground(&self) -> Result<()> {
        // Asked for before anything runs: a signal that comes early must not be lost.
        let mut signals = Signals::listen()?;
        start_log();
        raise_file_limit();
        let step = Step::start("starting the cluster");
        let mut cluster = Cluster::start(ClusterConfig {
            data_dir: self.data_dir.clone(),
            listen: self.listen.unwrap_or_else(|| last_address(&self.data_dir)),
            names: self.san.clone(),
            in_memory: self.in_memory,
            controllers: !self.no_controllers,
            node: if self.no_node || self.no_controllers {
                None
            } else {
                let mut node = NodeSettings::new("windlass");
                node.runtime = self.runtime.map(Runtime::from);
                node.images = images::table(&self.data_dir)?;
                Some(node)
            },
        })
        .await?;
        let with = self.operators();
        for bundled in &with {
            cluster.run_operator(&bundled.operator()).await?;
        }
        drop(step);
        let kubeconfig = self.write_kubeconfig(&cluster)?;
        let operators = with
            .iter()
            .map(|bundled| bundled.name().to_owned())
            .collect();
        let state = State::of_this_process(
            cluster.address(),
            kubeconfig,
            operators,
            node_line(&cluster),
        );
        state.write(&self.data_dir)?;
        let shown = signals.unless(self.show(&state)).await;
        if matches!(shown, Some(Ok(()))) {
            if !self.output.is_json() {
                println!("running; Ctrl-C stops it");
            }
            signals.asked().await;
        }
        let step = Step::start("stopping the cluster and its pods");
        cluster.stop().await;
        drop(step);
        shown.unwrap_or(Ok(()))
    }

    /// Starts the cluster as a process of its own, and waits until it serves.
    async fn detach(&self) -> Result<()> {
        let log = self.data_dir.join("up.log");
        let output = fs::OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&log)
            .map_err(at(&log))?;
        let mut signals = Signals::listen()?;
        let step = Step::start("starting the cluster");
        let mut child = tokio::process::Command::from(self.command(output)?)
            .spawn()
            .map_err(|error| Error::Other(format!("cannot start the cluster: {error}")))?;
        let ready = async {
            loop {
                // The state is written once the cluster serves.
                if let Ok(state) = State::running(&self.data_dir) {
                    return Some(state);
                }
                if !matches!(child.try_wait(), Ok(None)) {
                    return None;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let started = signals
            .unless(tokio::time::timeout(START_LIMIT, ready))
            .await;
        drop(step);
        let Some(state) = started else {
            let _step = Step::start("ending the cluster that was to start");
            interrupt::pass_on(&child);
            let _ = tokio::time::timeout(STOP_LIMIT, child.wait()).await;
            return Err(Error::Interrupted("no cluster was started".to_owned()));
        };
        if let Some(state) = state.ok().flatten() {
            signals.unless(self.show(&state)).await.unwrap_or_else(|| {
                Err(Error::Interrupted(
                    "the cluster runs; stop it with `windlass down`".to_owned(),
                ))
            })
        } else {
            let _ = child.start_kill();
            let text = fs::read_to_string(&log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let tail = lines[lines.len().saturating_sub(10)..].join("\n");
            Err(Error::DidNotStart { log, tail })
        }
    }

    /// This program again, in the foreground of a session of its own.
    fn command(&self, output: File) -> Result<Command> {
        let program = std::env::current_exe()
            .map_err(|error| Error::Other(format!("cannot find this program: {error}")))?;
        let errors = output
            .try_clone()
            .map_err(|error| Error::Other(error.to_string()))?;
        let mut command = Command::new(program);
        command.arg("up").arg("--data-dir").arg(&self.data_dir);
        if let Some(listen) = self.listen {
            command.arg("--listen").arg(listen.to_string());
        }
        for name in &self.san {
            command.arg("--san").arg(name);
        }
        if let Some(path) = &self.kubeconfig_out {
            command.arg("--kubeconfig-out").arg(path);
        }
        if self.no_node {
            command.arg("--no-node");
        }
        if self.no_controllers {
            command.arg("--no-controllers");
        }
        if self.in_memory {
            command.arg("--in-memory");
        }
        if let Some(runtime) = self.runtime {
            command
                .arg("--runtime")
                .arg(Runtime::from(runtime).to_string());
        }
        for bundled in self.operators() {
            command.arg("--with").arg(bundled.name());
        }
        // A group of its own: Ctrl-C in this terminal is not meant for it.
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        Ok(command)
    }

    fn write_kubeconfig(&self, cluster: &Cluster) -> Result<PathBuf> {
        let path = self
            .kubeconfig_out
            .clone()
            .unwrap_or_else(|| self.data_dir.join("kubeconfig"));
        let text = serde_saphyr::to_string(cluster.kubeconfig())
            .map_err(|error| Error::Other(format!("cannot write a kubeconfig: {error}")))?;
        let unfinished = path.with_extension("new");
        let write = || {
            let mut file = fs::OpenOptions::new()
                .create(true)
                .write(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(text.as_bytes())?;
            fs::rename(&unfinished, &path)
        };
        write().map_err(at(&path))?;
        std::path::absolute(&path).map_err(at(&path))
    }

    /// Says what runs and how to use it; creates the samples first if they were asked for.
    async fn show(&self, state: &State) -> Result<()> {
        let client = status::client(state).await?;
        if self.sample {
            for bundled in self.operators() {
                let _step = Step::start(format!(
                    "waiting for the sample of {} to run",
                    bundled.name()
                ));
                samples::run(&client, bundled).await?;
            }
        }
        if self.output.is_json() {
            println!("{:#}", state.facts());
            return Ok(());
        }
        let operators = if state.operators.is_empty() {
            "none".to_owned()
        } else {
            state.operators.join(", ")
        };
        println!(
            "windlass {}: a cluster for developing and testing, not for production\n",
            env!("CARGO_PKG_VERSION")
        );
        println!("  API server  {}", state.address);
        println!("  node        {}", state.node);
        println!("  operators   {operators}");
        if self.in_memory {
            println!("  objects     in memory, gone with the cluster");
        } else {
            println!(
                "  objects     kept in {} until `windlass down --purge`",
                self.data_dir.display()
            );
        }
        println!("  kubeconfig  {}\n", state.kubeconfig.display());
        if self.sample {
            print!("{}", status::tables(&client).await?);
        }
        let elsewhere = if self.data_dir == Path::new(".windlass") {
            String::new()
        } else {
            format!(" --data-dir {}", self.data_dir.display())
        };
        println!("use it:   export KUBECONFIG={}", state.kubeconfig.display());
        let program = std::env::args()
            .next()
            .unwrap_or_else(|| "windlass".to_owned());
        println!("look:     {program} status{elsewhere}");
        println!("stop:     {program} down{elsewhere}");
        Ok(())
    }
}

/// What runs the pods of a cluster, and why.
fn node_line(cluster: &Cluster) -> String {
    let (Some(choice), Some(range)) = (cluster.runtime(), cluster.pod_range()) else {
        return "none: pods are not run".to_owned();
    };
    let what = match choice.runtime {
        Runtime::Sandbox => "pods have namespaces of their own",
        Runtime::Process => "pods are plain processes",
    };
    format!(
        "runtime {}: {what}, each with an address in {range} ({})",
        choice.runtime, choice.why
    )
}

fn make_private_dir(mut builder: fs::DirBuilder, path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    builder
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(at(path))
}

/// The address of last time, so that an old kubeconfig goes on working; any free port the first time.
fn last_address(data_dir: &Path) -> SocketAddr {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let last = State::last(data_dir)
        .and_then(|state| state.address.strip_prefix("https://")?.parse().ok());
    last.filter(|address| std::net::TcpListener::bind(address).is_ok())
        .unwrap_or(any)
}

/// A cluster has many connections: it may have as many files open as this user is allowed to.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// Logs go to stderr; `RUST_LOG` chooses what is said.
pub(crate) fn start_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}
