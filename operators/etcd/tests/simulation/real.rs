//! Real etcd processes on loopback ports, for as long as a test needs them.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::world::Arguments;

/// The programs there are: the distribution's, and the one the real control plane uses.
#[track_caller]
pub(crate) fn programs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let places = [PathBuf::from("/usr/bin/etcd"), root.join(".real/bin/etcd")];
    let found: Vec<PathBuf> = places.into_iter().filter(|path| path.exists()).collect();
    if found.is_empty() {
        windlass_skip::skip("no etcd is installed (apt-get install etcd-server)");
    }
    found
}

/// The version of a program, as in `3.4`.
pub(crate) fn minor(program: &Path) -> String {
    let said = Command::new(program).arg("--version").output();
    let said = said.unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()));
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let version = said.lines().next().and_then(|line| line.rsplit(' ').next());
    let version = version.unwrap_or_default();
    version
        .rsplit_once('.')
        .map_or(version, |(minor, _)| minor)
        .to_owned()
}

/// Below the ports that the kernel gives to clients: none of those takes one before it is used.
const FIRST_PORT: u32 = 11_000;
const PORTS: u32 = 20_000;

/// Ports that nobody uses now, and that nobody else here is given.
pub(crate) fn free_ports(count: usize) -> Vec<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(997);
    let candidates = std::iter::repeat_with(|| {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        u16::try_from(FIRST_PORT + begin.wrapping_add(next) % PORTS).expect("a port")
    });
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    candidates.filter(is_free).take(count).collect()
}

/// One process. Dropped, it is killed.
pub(crate) struct RealProcess(Child);

impl RealProcess {
    pub(crate) fn start(program: &Path, folder: &Path, arguments: &Arguments) -> Self {
        let members: Vec<String> = arguments
            .initial_cluster
            .iter()
            .map(|(name, url)| format!("{name}={url}"))
            .collect();
        let state = if arguments.existing {
            "existing"
        } else {
            "new"
        };
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.with_extension("log"))
            .expect("a log file");
        let child = Command::new(program)
            .env_clear()
            .arg(format!("--name={}", arguments.name))
            .arg(format!("--data-dir={}", folder.display()))
            .arg(format!("--listen-peer-urls={}", arguments.peer_url))
            .arg(format!(
                "--initial-advertise-peer-urls={}",
                arguments.peer_url
            ))
            .arg(format!("--listen-client-urls={}", arguments.client_url))
            .arg(format!("--advertise-client-urls={}", arguments.client_url))
            .arg(format!("--initial-cluster={}", members.join(",")))
            .arg(format!("--initial-cluster-state={state}"))
            .arg(format!("--initial-cluster-token={}", arguments.token))
            .args(["--heartbeat-interval=50", "--election-timeout=500"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log)
            .spawn();
        Self(child.unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display())))
    }

    /// Its process id.
    pub(crate) fn id(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a process id")
    }

    /// The exit code, if it has ended.
    pub(crate) fn exited(&mut self) -> Option<i32> {
        let status = self.0.try_wait().expect("the state of a child");
        status.map(|status| status.code().unwrap_or(-1))
    }
}

impl Drop for RealProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A place for data folders.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Waits until something is so; false when it is not in time.
pub(crate) async fn until(limit: Duration, mut is: impl AsyncFnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if is().await {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        sleep(Duration::from_millis(50)).await;
    }
}
