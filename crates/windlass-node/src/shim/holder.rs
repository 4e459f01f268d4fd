//! The first process of the PID namespace that a pod's containers share, where they do.
//!
//! They see it, and one that may trace others could look at its root through `/proc/1/root`. So it
//! has none but an empty folder.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{WaitOptions, wait};
use tokio::signal::unix::{SignalKind, signal};

use super::HOLDER;

/// Starts the first process of a PID namespace that the containers share.
pub(super) fn start() -> io::Result<Child> {
    Command::new("unshare")
        .args(["--pid", "--mount", "--fork", "--kill-child=KILL", "--"])
        .arg(PathBuf::from(format!("/proc/{}/exe", std::process::id())))
        .arg(HOLDER)
        .stdin(Stdio::null())
        .spawn()
}

/// The number, on the host, of the only child of a process; it takes a moment to appear.
pub(super) async fn first_child(pid: u32) -> io::Result<i32> {
    for _ in 0..500 {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        if let Some(child) = children
            .split_whitespace()
            .next()
            .and_then(|n| n.parse().ok())
        {
            return Ok(child);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Err(io::Error::other(
        "the shared PID namespace did not come about",
    ))
}

/// Becomes the first process of a PID namespace: collects what ends in it, until it is killed.
pub fn hold_processes() -> ExitCode {
    if let Err(error) = leave_root() {
        eprintln!("cannot leave the root of the machine: {error}");
        return ExitCode::FAILURE;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let mut ended = signal(SignalKind::child())?;
            let mut asked = signal(SignalKind::terminate())?;
            loop {
                while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
                tokio::select! {
                    biased;
                    _ = asked.recv() => return Ok(()),
                    _ = ended.recv() => {}
                }
            }
        })
    });
    if outcome.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Makes an empty folder the root, in a mount namespace that is this process's own.
fn leave_root() -> io::Result<()> {
    // Any folder that is there will do.
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    mount("none", "/proc", "tmpfs", flags, None)?;
    rustix::process::chdir("/proc")?;
    rustix::process::pivot_root(".", ".")?;
    // What is below now is the root that was.
    unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}
