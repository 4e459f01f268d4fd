//! A container that an OCI runtime contains, from its start to its end.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use super::console::Console;
use super::part::Parts;
use super::protocol::{Exit, Sandbox, Start};
use super::stream::Ends;
use crate::runtime::{Input, Output};
use crate::terminal::Terminal;

/// The first process of a container.
pub(super) struct First {
    pid: Pid,
    target: Target,
    /// Its cgroup, below each hierarchy's root.
    cgroup: String,
}

/// Whom signals are sent to.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pid: Pid,
    /// What tells its processes from those of the pod's other containers; present when the
    /// container has no PID namespace that ends with its first process.
    mount_namespace: Option<PathBuf>,
}

/// The namespaces that containers join, by their OCI names and their links in `/proc`.
const JOINED: [(&str, &str); 3] = [("network", "net"), ("ipc", "ipc"), ("uts", "uts")];

/// Starts a container; says why when that cannot be done.
pub(super) async fn start(
    config: &Sandbox,
    holder: Option<i32>,
    start: &Start,
) -> Result<(First, Ends), String> {
    let cgroup = prepare(config, holder, start)
        .map_err(|error| format!("cannot prepare the root of the container: {error}"))?;
    // The container has mounts of its own by the time the runtime has started it.
    let _parts = Parts::mount(&start.parts)?;
    let cannot = |error: io::Error| format!("cannot run {}: {error}", config.oci.display());
    let pid_file = start.folder.join("pid");
    let said = start.folder.join("oci.log");
    let console = if start.terminal {
        Some(Console::listen(&start.folder).map_err(cannot)?)
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
        .arg(&start.folder);
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
        .stdin(piped(start.stdin && !start.terminal))
        .stdout(piped(!start.terminal))
        .stderr(piped(!start.terminal));
    let mut child = command.spawn().map_err(cannot)?;
    let mut ends = Ends {
        stdin: child.stdin.take().map(|pipe| Box::new(pipe) as Input),
        stdout: child.stdout.take().map(|pipe| Box::new(pipe) as Output),
        stderr: child.stderr.take().map(|pipe| Box::new(pipe) as Output),
        terminal: None,
    };
    let master = match &console {
        Some(console) => console.accept(child.wait()).await.map_err(cannot)?,
        None => None,
    };
    let ended = child.wait().await.map_err(cannot)?;
    if !ended.success() {
        let silent = || "the OCI runtime did not say why".to_owned();
        return Err(complaint(&said).unwrap_or_else(silent));
    }
    let text = std::fs::read_to_string(&pid_file).map_err(cannot)?;
    let pid = text
        .trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| format!("{} is no process number", text.trim()))?;
    if let Some(master) = master {
        let terminal = Terminal::of(master).map_err(cannot)?;
        ends = Ends::at(terminal, start.stdin).map_err(cannot)?;
    }
    let namespace = mount_namespace(pid.as_raw_nonzero().get());
    let target = Target {
        pid,
        mount_namespace: namespace.filter(|_| config.share_processes),
    };
    let first = First {
        pid,
        target,
        cgroup,
    };
    Ok((first, ends))
}

impl First {
    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    pub(super) fn target(&self) -> Target {
        self.target.clone()
    }

    /// Waits for the end; no process is left afterwards.
    pub(super) async fn ended(self) -> Exit {
        let code = exit_code(self.pid).await;
        let at = Timestamp::now();
        kill_mates(self.target.mount_namespace.as_deref());
        Exit {
            code,
            at,
            out_of_memory: was_out_of_memory(&self.cgroup),
        }
    }
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
                return crate::process::exit_code(ExitStatus::from_raw(status.as_raw()));
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

/// Whether the kernel has killed a process of a cgroup for want of memory.
fn was_out_of_memory(cgroup: &str) -> bool {
    // Where the two versions of cgroups count that.
    let counts = [
        format!("/sys/fs/cgroup/memory{cgroup}/memory.oom_control"),
        format!("/sys/fs/cgroup{cgroup}/memory.events"),
    ];
    counts.iter().any(|path| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let killed = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        killed.is_some_and(|count| count.trim() != "0")
    })
}

fn mount_namespace(pid: i32) -> Option<PathBuf> {
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

/// Mounts the root and completes the description of the container; says in which cgroup it is.
fn prepare(config: &Sandbox, holder: Option<i32>, start: &Start) -> io::Result<String> {
    let folder = |name: &str| start.folder.join(name);
    for name in ["rootfs", "upper", "work"] {
        std::fs::create_dir_all(folder(name))?;
    }
    // The topmost layer says who may enter the root: as the lowest does, whatever the umask here.
    if let Some(lower) = &start.lower {
        let permissions = std::fs::metadata(lower)?.permissions();
        std::fs::set_permissions(folder("upper"), permissions)?;
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
        start.lower.as_deref().unwrap_or_default(),
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
    let cgroup = description["linux"]["cgroupsPath"].as_str();
    Ok(cgroup.unwrap_or_default().to_owned())
}

/// Takes away what a run leaves behind: the runtime's state, its cgroups, its root.
pub(super) async fn clean_up(config: &Sandbox, start: &Start) {
    if let Err(error) = delete(&config.oci, &config.oci_root, &start.id).await {
        eprintln!("cannot delete {}: {error}", start.id);
    }
    let _ = rustix::mount::unmount(start.folder.join("rootfs"), UnmountFlags::DETACH);
}

/// Has the OCI runtime end a container and forget it; one that it does not know is no error.
pub(crate) async fn delete(oci: &Path, root: &Path, id: &str) -> io::Result<()> {
    let deleted = Command::new(oci)
        .arg("--root")
        .arg(root)
        .args(["delete", "--force", id])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    deleted.await.map(drop)
}

/// The last error in a log of the OCI runtime.
pub(crate) fn complaint(log: &Path) -> Option<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().rev().find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let said = line["msg"].as_str()?;
        (line["level"] == "error").then(|| said.to_owned())
    })
}
