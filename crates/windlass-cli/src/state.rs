//! What a cluster leaves in its data folder so that `status` and `down` find it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Error, Result, at};

/// A cluster that runs, or did.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) pid: i32,
    /// Tells this process from a later one of the same number.
    start_time: u64,
    pub(crate) address: String,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) operators: Vec<String>,
    /// What runs pods, and why.
    pub(crate) node: String,
}

impl State {
    /// The state of this very process.
    pub(crate) fn of_this_process(
        address: String,
        kubeconfig: PathBuf,
        operators: Vec<String>,
        node: String,
    ) -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self {
            pid,
            start_time: start_time(pid).unwrap_or_default(),
            address,
            kubeconfig,
            operators,
            node,
        }
    }

    /// What programs want to know of it.
    pub(crate) fn facts(&self) -> Value {
        json!({
            "address": self.address,
            "kubeconfig": self.kubeconfig,
            "node": self.node,
            "operators": self.operators,
            "pid": self.pid,
        })
    }

    fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("cluster.json")
    }

    pub(crate) fn write(&self, data_dir: &Path) -> Result<()> {
        let path = Self::path(data_dir);
        let unfinished = path.with_extension("json.new");
        let text =
            serde_json::to_vec_pretty(self).map_err(|error| Error::Other(error.to_string()))?;
        fs::write(&unfinished, text).map_err(at(&unfinished))?;
        fs::rename(&unfinished, &path).map_err(at(&path))
    }

    /// The cluster that ran last from this folder, running or not.
    pub(crate) fn last(data_dir: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(Self::path(data_dir)).ok()?).ok()
    }

    /// The cluster that runs from this folder.
    pub(crate) fn running(data_dir: &Path) -> Result<Self> {
        Self::last(data_dir)
            .filter(Self::is_running)
            .ok_or_else(|| Error::NotRunning(data_dir.to_owned()))
    }

    pub(crate) fn is_running(&self) -> bool {
        let alive = Pid::from_raw(self.pid).is_some_and(|pid| test_kill_process(pid).is_ok());
        alive && start_time(self.pid) == Some(self.start_time)
    }

    /// Sends a signal; false when there was nobody to send it to.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        Pid::from_raw(self.pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
    }

    /// Waits until the process is gone; false when it is not within `limit`.
    pub(crate) async fn gone_within(&self, limit: Duration) -> bool {
        let gone = async {
            // Another process's end can only be asked for.
            while self.is_running() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(limit, gone).await.is_ok()
    }
}

/// When a process started, in the kernel's ticks since boot.
fn start_time(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; what follows it is plain.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    // A process that ended but was not waited for yet does not run any more.
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}
