//! One container of the pod, from the OCI runtime's start to its end.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::protocol::{Config, Held, Start};
use super::stream::{self, Streams};
use crate::log::Writer;

/// How long to wait for the last output of a container whose processes are all gone.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A container whose first process exists.
pub(super) struct Running {
    pub(super) held: Held,
    pub(super) streams: Streams,
    copying: JoinHandle<()>,
    pid: Pid,
    /// What tells its processes from those of the pod's other containers.
    mount_namespace: Option<std::path::PathBuf>,
}

/// The namespaces that containers join, by their OCI names and their links in `/proc`.
const JOINED: [(&str, &str); 3] = [("network", "net"), ("ipc", "ipc"), ("uts", "uts")];

/// Starts a container; says why when that cannot be done.
pub(super) async fn start(
    config: &Config,
    holder: Option<i32>,
    start: &Start,
) -> Result<Running, String> {
    let prepared = prepare(config, holder, start)
        .map_err(|error| format!("cannot prepare the root of the container: {error}"))?;
    let log = Writer::create(&start.log, windlass::Clock::default())
        .map_err(|error| format!("cannot write {}: {error}", start.log.display()))?;
    let launched = launch(config, start, prepared, log).await;
    if launched.is_err() {
        clean_up(config, start).await;
    }
    launched
}

async fn launch(
    config: &Config,
    start: &Start,
    terminal: bool,
    log: Writer,
) -> Result<Running, String> {
    let cannot = |error: io::Error| format!("cannot run {}: {error}", config.oci.display());
    let pid_file = start.bundle.join("pid");
    let said = start.bundle.join("oci.log");
    let console = if terminal {
        Some(stream::Console::listen(&start.bundle).map_err(cannot)?)
    } else {
        None
    };
    let mut command = Command::new(&config.oci);
    command
        .arg("--root")
        .arg(&config.oci_root)
        .arg("--log")
        .arg(&said)
        .args(["--log-format", "json", "run", "--detach", "--pid-file"])
        .arg(&pid_file)
        .arg("--bundle")
        .arg(&start.bundle);
    if let Some(console) = &console {
        command.arg("--console-socket").arg(console.path());
    }
    command.arg(&start.id);
    let piped = |wanted: bool| {
        if wanted {
            Stdio::piped()
        } else {
            Stdio::null()
        }
    };
    command
        .stdin(piped(start.stdin && !terminal))
        .stdout(piped(!terminal))
        .stderr(piped(!terminal));
    let mut child = command.spawn().map_err(cannot)?;
    let (input, output, error) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let master = match &console {
        Some(console) => console.accept(child.wait()).await.map_err(cannot)?,
        None => None,
    };
    let ended = child.wait().await.map_err(cannot)?;
    let started_at = Timestamp::now();
    if !ended.success() {
        return Err(complaint(&said));
    }
    let text = std::fs::read_to_string(&pid_file).map_err(cannot)?;
    let pid = text
        .trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| format!("{} is no process number", text.trim()))?;
    let (streams, copying) = match master {
        Some(master) => stream::of_terminal(master, log, start.stdin).map_err(cannot)?,
        None => stream::of_pipes(input, output, error, log),
    };
    Ok(Running {
        held: Held {
            container: start.container.clone(),
            run: start.run,
            id: start.id.clone(),
            image_id: start.image_id.clone(),
            pid: pid.as_raw_nonzero().get(),
            started_at,
            exit: None,
        },
        streams,
        copying,
        mount_namespace: mount_namespace(pid.as_raw_nonzero().get()),
        pid,
    })
}

impl Running {
    /// Waits for the end of the container; nothing of it is left afterwards. Gives its exit code.
    pub(super) async fn ended(self, config: &Config, start: &Start) -> i32 {
        let code = exit_code(self.pid).await;
        if config.share_processes {
            kill_mates(self.mount_namespace.as_deref());
        }
        if tokio::time::timeout(LAST_WORDS, self.copying)
            .await
            .is_err()
        {
            tracing::debug!(id = start.id, "the last output of a container is lost");
        }
        clean_up(config, start).await;
        code
    }

    /// What sends signals to the container.
    pub(super) fn target(&self, config: &Config) -> Target {
        Target {
            pid: self.pid,
            mount_namespace: self
                .mount_namespace
                .clone()
                .filter(|_| config.share_processes),
        }
    }
}

/// Whom signals are sent to.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pid: Pid,
    /// Present when the container has no PID namespace that ends with its first process.
    mount_namespace: Option<std::path::PathBuf>,
}

impl Target {
    pub(super) fn signal(&self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else {
            return;
        };
        // Its first process is a child of ours that has not been waited for: the number is its own.
        let _ = kill_process(self.pid, signal);
        if signal == Signal::KILL {
            kill_mates(self.mount_namespace.as_deref());
        }
    }
}

/// Waits for a child that is not of our own making, but was given to us when its parent ended.
async fn exit_code(pid: Pid) -> i32 {
    // Asked for before the first look, so that no end is missed.
    let mut ends = signal(SignalKind::child()).ok();
    loop {
        match waitpid(Some(pid), WaitOptions::NOHANG) {
            Ok(Some((_, status))) => {
                let status = std::process::ExitStatus::from_raw(status.as_raw());
                return status
                    .code()
                    .or_else(|| status.signal().map(|signal| 128 + signal))
                    .unwrap_or(255);
            }
            Ok(None) => match &mut ends {
                Some(ends) => {
                    ends.recv().await;
                }
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return 255,
        }
    }
}

fn mount_namespace(pid: i32) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok()
}

/// Kills the processes that see the container's files.
fn kill_mates(namespace: Option<&Path>) {
    let Some(namespace) = namespace else {
        return;
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if mount_namespace(pid).as_deref() == Some(namespace)
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Mounts the root and completes the description of the container; says whether it has a terminal.
fn prepare(config: &Config, holder: Option<i32>, start: &Start) -> io::Result<bool> {
    let folder = |name: &str| start.bundle.join(name);
    for name in ["rootfs", "upper", "work"] {
        std::fs::create_dir_all(folder(name))?;
    }
    let text = |path: &Path| -> io::Result<String> {
        let text = path.to_string_lossy().into_owned();
        if text.contains([',', ':', '\\']) {
            let message = format!("{text} cannot be part of an overlay: it holds a , a : or a \\");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(text)
    };
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        start.lower,
        text(&folder("upper"))?,
        text(&folder("work"))?
    );
    let options = std::ffi::CString::new(options)?;
    rustix::mount::mount(
        "overlay",
        folder("rootfs"),
        "overlay",
        MountFlags::empty(),
        Some(options.as_c_str()),
    )?;
    let path = folder("config.json");
    let mut description: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    let shim = std::process::id();
    let mut namespaces = vec![json!({"type": "mount"})];
    namespaces.push(match holder {
        Some(holder) => json!({"type": "pid", "path": format!("/proc/{holder}/ns/pid")}),
        None => json!({"type": "pid"}),
    });
    for (kind, link) in JOINED {
        if kind != "network" || config.own_network {
            namespaces.push(json!({"type": kind, "path": format!("/proc/{shim}/ns/{link}")}));
        }
    }
    description["linux"]["namespaces"] = namespaces.into();
    std::fs::write(&path, serde_json::to_vec(&description)?)?;
    Ok(description["process"]["terminal"] == true)
}

/// Takes away what a run leaves: the runtime's state, its cgroups, its root.
async fn clean_up(config: &Config, start: &Start) {
    let deleted = Command::new(&config.oci)
        .arg("--root")
        .arg(&config.oci_root)
        .args(["delete", "--force"])
        .arg(&start.id)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .await;
    if let Err(error) = deleted {
        tracing::warn!(%error, id = start.id, "cannot delete a container");
    }
    let _ = rustix::mount::unmount(start.bundle.join("rootfs"), UnmountFlags::DETACH);
    if let Err(error) = std::fs::remove_dir_all(&start.bundle) {
        tracing::warn!(%error, id = start.id, "cannot remove the folder of a container");
    }
}

/// What the OCI runtime said last.
fn complaint(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let said = text.lines().rev().find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        Some(line["msg"].as_str()?.to_owned())
    });
    said.unwrap_or_else(|| "the OCI runtime did not say why".to_owned())
}
