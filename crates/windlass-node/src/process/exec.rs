//! Commands beside the process of a container.

use std::io;
use std::process::ExitStatus;

use futures::FutureExt;
use tokio::process::Child;
use tokio::sync::{mpsc, watch};

use super::exit_code;
use super::place::Place;
use crate::image;
use crate::runtime::{Execution, Session};
use crate::shim::Ends;
use crate::terminal::Terminal;

/// What a command that ends because its container did is said to have ended with.
const KILLED: i32 = 137;

/// Runs a command where a container runs, for no longer than that does.
pub(super) fn exec(
    place: &Place,
    execution: &Execution,
    mut over: watch::Receiver<bool>,
) -> io::Result<Session> {
    let Some((program, args)) = execution.command.split_first() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "you must specify at least one command for the container",
        ));
    };
    let path = place.environment.get("PATH").unwrap_or_default();
    let Some(found) = image::find(program, path) else {
        return Ok(failed(program, "executable file not found in $PATH"));
    };
    let spawned = place.spawn(&found, args, execution.tty, execution.stdin);
    let (child, ends) = match spawned {
        Ok(spawned) => spawned,
        Err(error) => return Ok(failed(program, &error.to_string())),
    };
    let Ends {
        stdin,
        stdout,
        stderr,
        terminal,
    } = ends;
    let mut running = Running(child);
    Ok(Session {
        stdin,
        stdout,
        stderr,
        resize: terminal.map(resizing),
        ended: async move {
            tokio::select! {
                biased;
                ended = running.wait() => ended.map(exit_code),
                _ = over.wait_for(|over| *over) => Ok(KILLED),
            }
        }
        .boxed(),
    })
}

/// A command that never began.
fn failed(program: &str, why: &str) -> Session {
    let error = io::Error::other(format!("exec failed: exec: \"{program}\": {why}"));
    Session {
        stdin: None,
        stdout: None,
        stderr: None,
        resize: None,
        ended: std::future::ready(Err(error)).boxed(),
    }
}

fn resizing(terminal: Terminal) -> mpsc::UnboundedSender<(u16, u16)> {
    let (sender, mut sizes) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some((columns, rows)) = sizes.recv().await {
            terminal.resize(columns, rows);
        }
    });
    sender
}

/// A command that ends, with what it started, when nobody waits for it any more.
struct Running(Child);

impl Running {
    /// Waits for the end; what the command leaves behind may still write for a moment.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // Not reaped yet, so the number is its own.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}
