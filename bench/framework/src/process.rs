//! An operator as a process, and what it takes of the machine.

use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use tokio::process::{Child, Command};

use crate::Anything;

/// What Linux counts a process's time in.
const TICKS_PER_SECOND: f64 = 100.0;
/// A process that used no more than this in a second has nothing to do.
const CALM: f64 = 0.02;

/// One of the operators: its name in the table, and how it is started.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    program: String,
    arguments: Vec<String>,
}

impl Subject {
    /// `NAME=PROGRAM [ARGUMENT…]`
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, line) = text.split_once('=')?;
        let mut words = line.split_whitespace().map(ToOwned::to_owned);
        Some(Self {
            name: name.to_owned(),
            program: words.next()?,
            arguments: words.collect(),
        })
    }

    /// Starts it; what it logs is thrown away, as a log collector would take it off its hands.
    pub(crate) fn start(&self) -> Anything<Process> {
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.program))?;
        let pid = child.id().ok_or("it ended at once")?;
        Ok(Process { child, pid })
    }
}

/// Resident memory, in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) all: f64,
    /// Without the pages of its code. How many of those are resident differs from one start of the
    /// same program to the next, by half a MiB and more.
    pub(crate) data: f64,
}

/// A running operator.
pub(crate) struct Process {
    child: Child,
    pid: u32,
}

impl Process {
    /// Seconds of CPU it has used so far, in user and in system mode.
    pub(crate) fn cpu(&self) -> Anything<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        // The name in parentheses may hold anything, spaces too.
        let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks = after
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<f64>().ok());
        Ok(ticks.sum::<f64>() / TICKS_PER_SECOND)
    }

    /// How much memory of it is resident.
    pub(crate) fn memory(&self) -> Anything<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        };
        let (all, data) = (number("VmRSS:"), number("RssAnon:"));
        let (all, data) = all.zip(data).ok_or("it has ended")?;
        Ok(Memory { all, data })
    }

    /// Waits until it has used next to no CPU for a second; answers what it has used by then.
    pub(crate) async fn calm(&self) -> Anything<f64> {
        let limit = Instant::now() + Duration::from_secs(90);
        let mut before = self.cpu()?;
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.cpu()?;
            if now - before <= CALM || Instant::now() > limit {
                return Ok(now);
            }
            before = now;
        }
    }

    /// Ends it.
    pub(crate) async fn stop(mut self) -> Anything<()> {
        self.child.kill().await?;
        Ok(())
    }
}
