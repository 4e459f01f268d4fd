//! Ctrl-C, and the other ways a person ends a command.
//!
//! A command that has nothing to leave half-done simply dies. One that has either holds the signals
//! while it writes, because writing takes a moment ([`hold`]), or listens for them and takes back
//! what it began ([`Signals::asked`]).

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, Result};

/// The signals with which people and terminals end a command; from now on they do not end it by
/// themselves.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None when whoever started this does not want it to end with the terminal (`nohup`).
    hangup: Option<Signal>,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Error::Other(format!("cannot listen for signals: {error}")))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: if is_ignored(SignalKind::hangup()) {
                None
            } else {
                Some(listen(SignalKind::hangup())?)
            },
        })
    }

    /// Waits for the next of them. A terminal sends Ctrl-C to the whole group, and so to children
    /// too; the others have to be passed on to them.
    pub(crate) async fn asked(&mut self) -> Asked {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Asked::Everybody,
            _ = self.terminate.recv() => Asked::ThisProcess,
            _ = hangup => Asked::ThisProcess,
        }
    }

    /// The result of some work, unless a signal comes first.
    pub(crate) async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            _ = self.asked() => None,
            done = work => Some(done),
        }
    }
}

/// Whether a signal was ignored when this process began.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default();
    mask & (1 << (kind.as_raw_value() - 1)) != 0
}

/// Who was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Everybody,
    ThisProcess,
}

/// How a child ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// Whether a person wanted it to end.
    pub(crate) asked: bool,
}

/// Waits for a child. It hears of Ctrl-C as this process does; anything else is passed on to it.
pub(crate) async fn wait(child: &mut Child, signals: &mut Signals) -> io::Result<Ended> {
    let mut asked = false;
    loop {
        tokio::select! {
            biased;
            // First: a terminal tells both, and the child is often the quicker to end.
            who = signals.asked() => {
                asked = true;
                if who == Asked::ThisProcess {
                    pass_on(child);
                }
            }
            status = child.wait() => {
                let status = status?;
                let asked = asked || status.signal() == Some(2) || status.code() == Some(130);
                return Ok(Ended { status, asked });
            }
        }
    }
}

/// Keeps signals from ending this process, for the moment it takes to write something whole.
pub(crate) fn hold() -> Option<Signals> {
    Handle::try_current().ok()?;
    Signals::listen().ok()
}

/// Asks a child to end.
pub(crate) fn pass_on(child: &Child) {
    let pid = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}
