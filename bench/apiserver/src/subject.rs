//! What is measured: processes that are started, asked for what they cost, and ended.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use tempfile::TempDir;

use crate::connection::Connection;
use crate::error::{BenchError, During as _, Result};

/// How long a subject may take to serve.
const PATIENCE: Duration = Duration::from_secs(90);

/// One of the things that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Hyper and rustls alone, with answers of so many bytes.
    Ceiling(usize),
    OursInMemory,
    OursDurable,
    /// `windlass up --no-node --in-memory`: our API server with its controllers, as users run it.
    UpInMemory,
    /// `windlass up --no-node`.
    UpDurable,
    /// kube-apiserver with an etcd that waits for the disk.
    Kubernetes,
    /// The same with `--unsafe-no-fsync`.
    KubernetesUnsafe,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ceiling(_) => "bare hyper + rustls",
            Self::OursInMemory => "ours, in memory",
            Self::OursDurable => "ours, durable",
            Self::UpInMemory => "windlass up --no-node --in-memory",
            Self::UpDurable => "windlass up --no-node",
            Self::Kubernetes => "kube-apiserver + etcd",
            Self::KubernetesUnsafe => "the same, etcd unsafe",
        }
    }

    pub(crate) fn is_kubernetes(self) -> bool {
        matches!(self, Self::Kubernetes | Self::KubernetesUnsafe)
    }
}

/// Where programs and certificates are.
pub(crate) struct Places {
    /// Our own programs.
    pub(crate) programs: PathBuf,
    /// kube-apiserver and etcd.
    pub(crate) real: PathBuf,
    pub(crate) pki: PathBuf,
    /// Where subjects may store things: on a disk, not in memory.
    pub(crate) data: PathBuf,
}

/// A subject that runs. It ends with this value.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    /// From the start of its process to the first answer of `/readyz`.
    pub(crate) ready_after: Duration,
    processes: Vec<Process>,
    _folder: TempDir,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that nobody uses at the moment.
fn free_address() -> Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .during("find a free port")
}

impl Running {
    /// Starts a subject and waits until it is ready.
    pub(crate) async fn start(
        kind: Kind,
        places: &Places,
        anybody: &Arc<ClientConfig>,
    ) -> Result<Self> {
        let folder = TempDir::new_in(&places.data).during("make a folder for a subject")?;
        let address = free_address()?;
        let mut processes = Vec::new();
        let pki = |name: &str| places.pki.join(name).display().to_string();
        let mut command = match kind {
            Kind::Ceiling(bytes) => {
                let mut command = Command::new(places.programs.join("ceiling"));
                command
                    .args(["--bytes", &bytes.to_string(), "--pki"])
                    .arg(&places.pki);
                command.args(["--listen", &address.to_string()]);
                command
            }
            Kind::OursInMemory | Kind::OursDurable => {
                let mut command = Command::new(places.programs.join("apiserver"));
                command
                    .args(["--listen", &address.to_string(), "--pki"])
                    .arg(&places.pki);
                if kind == Kind::OursDurable {
                    command.arg("--data-dir").arg(folder.path().join("data"));
                }
                command
            }
            Kind::UpInMemory | Kind::UpDurable => {
                let data = folder.path().join("data");
                place_authority(&places.pki, &data.join("pki"))?;
                let mut command = Command::new(places.programs.join("windlass"));
                command
                    .args(["up", "--no-node", "--listen", &address.to_string()])
                    .arg("--data-dir")
                    .arg(data);
                if kind == Kind::UpInMemory {
                    command.arg("--in-memory");
                }
                command
            }
            Kind::Kubernetes | Kind::KubernetesUnsafe => {
                let etcd = start_etcd(kind, places, folder.path(), &mut processes).await?;
                let mut command = Command::new(places.real.join("kube-apiserver"));
                command.args([
                    "--etcd-servers",
                    &format!("http://{etcd}"),
                    "--bind-address=127.0.0.1",
                    "--advertise-address=127.0.0.1",
                    "--secure-port",
                    &address.port().to_string(),
                    "--tls-cert-file",
                    &pki("server.crt"),
                    "--tls-private-key-file",
                    &pki("server.key"),
                    "--client-ca-file",
                    &pki("ca.crt"),
                    "--cert-dir",
                    &folder.path().join("certificates").display().to_string(),
                    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                    "--service-account-key-file",
                    &pki("server.crt"),
                    "--service-account-signing-key-file",
                    &pki("server.key"),
                    "--authorization-mode=Node,RBAC",
                    "--service-cluster-ip-range=10.96.0.0/16",
                    "--endpoint-reconciler-type=none",
                    // Its own throttling is switched off, as ours is.
                    "--enable-priority-and-fairness=false",
                    "--max-requests-inflight=4000",
                    "--max-mutating-requests-inflight=2000",
                ]);
                command
            }
        };
        let log = folder.path().join("log");
        let began = Instant::now();
        let mut process = spawn(&mut command, &log)?;
        let path = if matches!(kind, Kind::Ceiling(_)) {
            "/"
        } else {
            "/readyz"
        };
        loop {
            if is_ready(address, anybody, path).await {
                break;
            }
            let ended = process.0.try_wait().during("look after a subject")?;
            if ended.is_some() || began.elapsed() > PATIENCE {
                return Err(not_serving(kind.name(), &log));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let ready_after = began.elapsed();
        processes.push(process);
        Ok(Self {
            address,
            ready_after,
            processes,
            _folder: folder,
        })
    }

    /// Resident memory of all its processes, in bytes.
    pub(crate) fn resident(&self) -> usize {
        let of = |process: &Process| {
            let status = std::fs::read_to_string(format!("/proc/{}/status", process.0.id()));
            let status = status.unwrap_or_default();
            let line = status.lines().find(|line| line.starts_with("VmRSS:"));
            let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
            kib.unwrap_or_default() * 1024
        };
        self.processes.iter().map(of).sum()
    }

    /// The time that cores have spent on its processes.
    pub(crate) fn cpu(&self) -> Duration {
        let of_thread = |thread: std::fs::DirEntry| {
            // Nanoseconds that it ran, nanoseconds that it waited, how often it ran.
            let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            stat.split_whitespace().next()?.parse::<u64>().ok()
        };
        let of = |process: &Process| {
            let threads = std::fs::read_dir(format!("/proc/{}/task", process.0.id()));
            let threads = threads.into_iter().flatten().flatten();
            threads.filter_map(of_thread).sum::<u64>()
        };
        Duration::from_nanos(self.processes.iter().map(of).sum())
    }
}

#[allow(clippy::cast_precision_loss, reason = "no figure here needs 52 bits")]
pub(crate) fn as_f64(number: u64) -> f64 {
    number as f64
}

async fn is_ready(address: SocketAddr, tls: &Arc<ClientConfig>, path: &str) -> bool {
    let Ok(mut connection) = Connection::open(address, tls).await else {
        return false;
    };
    let request = format!("GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n");
    let answer = connection.send(request.as_bytes(), |_| ()).await;
    answer.is_ok_and(|answer| answer.code == 200)
}

/// Puts the authority of the run where a cluster finds it and takes it for its own.
fn place_authority(from: &Path, to: &Path) -> Result<()> {
    let mut private = std::fs::DirBuilder::new();
    private.mode(0o700).recursive(true);
    private.create(to).during("make a data folder")?;
    for name in ["ca.crt", "ca.key"] {
        std::fs::copy(from.join(name), to.join(name)).during(format!("copy {name}"))?;
    }
    Ok(())
}

/// Starts etcd, and waits until it listens: only kube-apiserver's own start is timed.
async fn start_etcd(
    kind: Kind,
    places: &Places,
    folder: &Path,
    processes: &mut Vec<Process>,
) -> Result<SocketAddr> {
    let (client, peer) = (free_address()?, free_address()?);
    let (client_url, peer_url) = (format!("http://{client}"), format!("http://{peer}"));
    let mut command = Command::new(places.real.join("etcd"));
    command.arg("--data-dir").arg(folder.join("etcd")).args([
        "--name=bench",
        "--log-level=warn",
        "--listen-client-urls",
        &client_url,
        "--advertise-client-urls",
        &client_url,
        "--listen-peer-urls",
        &peer_url,
        "--initial-advertise-peer-urls",
        &peer_url,
        "--initial-cluster",
        &format!("bench={peer_url}"),
    ]);
    if kind == Kind::KubernetesUnsafe {
        command.arg("--unsafe-no-fsync");
    }
    let log = folder.join("etcd.log");
    processes.push(spawn(&mut command, &log)?);
    let began = Instant::now();
    while tokio::net::TcpStream::connect(client).await.is_err() {
        if began.elapsed() > PATIENCE {
            return Err(not_serving("etcd", &log));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(client)
}

fn spawn(command: &mut Command, log: &Path) -> Result<Process> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = File::create(log).during("make a log")?;
    let errors = output.try_clone().during("make a log")?;
    let child = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .during(format!("start {program}"))?;
    Ok(Process(child))
}

fn not_serving(name: &str, log: &Path) -> BenchError {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().rev().take(5).collect();
    let end: Vec<&str> = lines.into_iter().rev().collect();
    BenchError::NotServing(name.to_owned(), end.join("\n"))
}
