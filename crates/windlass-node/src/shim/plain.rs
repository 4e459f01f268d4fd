//! A container that is a plain process: a child of the shim, which gets all that it leaves behind.
//!
//! The shim is the reaper of everything below it, so a process cannot leave the pod: whatever it
//! does, it stays a descendant of the shim. Which of them are of which container, their marks say
//! ([`crate::process::tree`]); those that have lost every mark end with the last container.

use std::time::Duration;

use jiff::Timestamp;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};

use super::protocol::{Exit, Start};
use super::stream::Ends;
use crate::process::tree::{self, CONTAINER_MARK, Leader, Marks};
use crate::process::{Description, exit_code};

/// The first process of a container.
pub(super) struct First {
    child: Child,
    target: Target,
}

/// Whom signals are sent to.
#[derive(Debug, Clone)]
pub(super) struct Target {
    leader: Leader,
    marks: Marks,
}

/// Starts a container.
pub(super) fn start(start: &Start) -> Result<(First, Ends), String> {
    let description = Description::read(&start.folder)
        .map_err(|error| format!("cannot read the description of {}: {error}", start.id))?;
    let (child, ends) = description
        .spawn(start.terminal, start.stdin)
        .map_err(|error| format!("exec: \"{}\": {error}", description.name))?;
    // Not reaped yet, so its number is its own, whether it still runs or not.
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let leader = pid.and_then(Leader::of);
    let leader = leader.ok_or_else(|| "the process is gone".to_owned())?;
    let mark = description.place.environment.get(CONTAINER_MARK);
    let marks = Marks::new(CONTAINER_MARK, mark.unwrap_or_default(), Some(leader)).below(own());
    let target = Target { leader, marks };
    Ok((First { child, target }, ends))
}

impl First {
    pub(super) fn pid(&self) -> i32 {
        self.target.leader.pid
    }

    pub(super) fn target(&self) -> Target {
        self.target.clone()
    }

    /// Waits for the end; what the first process leaves behind ends with it, as in a PID namespace.
    /// `others` are the first processes of the containers that run beside it.
    pub(super) async fn ended(mut self, others: impl Fn() -> Vec<i32>) -> Exit {
        let ended = self.child.wait().await;
        let at = Timestamp::now();
        self.target.marks.kill().await;
        end_strays(others).await;
        Exit {
            code: ended.map_or(137, exit_code),
            at,
            // Nothing limits it.
            out_of_memory: false,
        }
    }
}

impl Target {
    pub(super) fn signal(&self, number: i32) {
        match Signal::from_named_raw(number) {
            Some(Signal::KILL) => {
                self.marks.signal(Signal::KILL);
            }
            Some(signal) => tree::send_to(self.leader, signal),
            None => {}
        }
    }
}

/// Ends what has lost every mark, as long as no container runs that it could be of.
pub(super) async fn end_strays(firsts: impl Fn() -> Vec<i32>) {
    for _ in 0..200 {
        if !firsts().is_empty() || !kill_everything() {
            return;
        }
        // The kernel needs a moment to take a killed process away.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Kills everything below the shim; false when nothing was left.
fn kill_everything() -> bool {
    let strays = tree::descendants(own());
    let strays: Vec<Leader> = strays.into_iter().filter_map(Leader::alive).collect();
    for stray in &strays {
        tree::send_to(*stray, Signal::KILL);
    }
    !strays.is_empty()
}

/// Collects the processes that others have left to the shim, as they end. `firsts` are those of
/// containers, which are waited for elsewhere.
pub(super) async fn reap(firsts: impl Fn() -> Vec<i32>) {
    let Ok(mut ends) = signal(SignalKind::child()) else {
        return;
    };
    while ends.recv().await.is_some() {
        let firsts = firsts();
        for pid in tree::children(own()) {
            if let Some(pid) = Pid::from_raw(pid).filter(|_| !firsts.contains(&pid)) {
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
    }
}

fn own() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}
