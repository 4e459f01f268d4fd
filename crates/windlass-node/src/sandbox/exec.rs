//! Commands beside a container's own process.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use futures::FutureExt as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::bundle;
use crate::process::exit_code;
use crate::runtime::{Execution, Session};
use crate::shim;
use crate::terminal::Terminal;

/// Where a container runs.
pub(super) struct Place<'a> {
    pub(super) oci: &'a Path,
    pub(super) oci_root: &'a Path,
    pub(super) id: &'a str,
    /// The folder with its description.
    pub(super) bundle: &'a Path,
    /// Tells commands that run at the same time apart.
    pub(super) number: u64,
}

/// Runs a command in a container.
pub(super) fn exec(place: &Place<'_>, execution: &Execution) -> io::Result<Session> {
    if execution.command.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "you must specify at least one command for the container",
        ));
    }
    let file = |name: &str| place.bundle.join(format!("exec-{}.{name}", place.number));
    let description = std::fs::read(place.bundle.join("config.json"))?;
    let mut description: Value = serde_json::from_slice(&description)?;
    let mut process = description["process"].take();
    process["args"] = execution.command.clone().into();
    process["terminal"] = execution.tty.into();
    if execution.tty {
        bundle::name_terminal(&mut process);
    }
    std::fs::write(file("json"), serde_json::to_vec(&process)?)?;
    let mut command = Command::new(place.oci);
    command
        .arg("--root")
        .arg(place.oci_root)
        .arg("--log")
        .arg(file("log"))
        .args(["--log-format", "json", "exec", "--process"])
        .arg(file("json"))
        .arg("--pid-file")
        .arg(file("pid"))
        .arg(place.id)
        .process_group(0)
        .kill_on_drop(true);
    let running = |child: Child| Running {
        child,
        files: Files {
            process: file("json"),
            pid: file("pid"),
            log: file("log"),
        },
    };
    if !execution.tty {
        let input = if execution.stdin {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        return Ok(Session {
            stdin: child.stdin.take().map(|input| Box::new(input) as _),
            stdout: child.stdout.take().map(|output| Box::new(output) as _),
            stderr: child.stderr.take().map(|output| Box::new(output) as _),
            resize: None,
            ended: running(child).ended().boxed(),
        });
    }
    let (terminal, program) = Terminal::open()?;
    command
        .stdin(program.try_clone()?)
        .stdout(program.try_clone()?)
        .stderr(program);
    let child = command.spawn()?;
    // The command holds the program's side of the terminal until it is dropped.
    drop(command);
    let pid = child.id();
    Ok(Session {
        stdin: Some(terminal.input()?),
        stdout: Some(terminal.output()?),
        stderr: None,
        resize: Some(resizing(terminal, pid)),
        ended: running(child).ended().boxed(),
    })
}

/// The OCI runtime passes the size of its own terminal on when it is told that it changed.
fn resizing(terminal: Terminal, runtime: Option<u32>) -> mpsc::UnboundedSender<(u16, u16)> {
    let (sender, mut sizes) = mpsc::unbounded_channel();
    let runtime = runtime.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    tokio::spawn(async move {
        while let Some((columns, rows)) = sizes.recv().await {
            terminal.resize(columns, rows);
            if let Some(runtime) = runtime {
                let _ = kill_process(runtime, Signal::WINCH);
            }
        }
    });
    sender
}

/// A command that ends when nobody waits for it any more.
struct Running {
    child: Child,
    files: Files,
}

/// What the OCI runtime reads and writes for one command.
struct Files {
    process: PathBuf,
    pid: PathBuf,
    log: PathBuf,
}

impl Running {
    /// Waits for the end: the command's own, or what kept it from beginning.
    async fn ended(mut self) -> io::Result<i32> {
        let ended = self.child.wait().await?;
        match shim::complaint(&self.files.log).filter(|_| !ended.success()) {
            Some(complaint) => Err(io::Error::other(format!(
                "OCI runtime exec failed: {complaint}"
            ))),
            None => Ok(exit_code(ended)),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.child.id().is_some() {
            // The runtime still waits for the command, so the number is the command's own.
            let pid = std::fs::read_to_string(&self.files.pid).unwrap_or_default();
            if let Some(pid) = pid.trim().parse().ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        for file in [&self.files.process, &self.files.pid, &self.files.log] {
            let _ = std::fs::remove_file(file);
        }
    }
}
