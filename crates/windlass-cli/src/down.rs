//! `windlass down`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rustix::process::Signal;
use serde_json::json;
use windlass_cluster::FolderLock;

use crate::error::{Error, Result, at};
use crate::output::Output;
use crate::progress::Step;
use crate::state::State;

/// How long a cluster may take to stop before it is ended.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Stop the cluster and everything that runs in it.
#[derive(Args)]
#[command(after_help = "Examples:\n  windlass down\n  windlass down --purge")]
pub(crate) struct Down {
    /// The cluster's data folder
    #[arg(long, default_value = ".windlass")]
    data_dir: PathBuf,
    /// Remove the data folder too: objects, certificates, logs, everything
    #[arg(long)]
    purge: bool,
    #[command(flatten)]
    output: Output,
}

impl Down {
    pub(crate) async fn run(self) -> Result<()> {
        let mut facts = json!({"stopped": null, "removed": null});
        let mut text = String::new();
        match State::running(&self.data_dir) {
            Ok(state) => {
                let step = Step::start("stopping the cluster and its pods");
                state.signal(Signal::TERM);
                if !state.gone_within(STOP_LIMIT).await {
                    state.signal(Signal::KILL);
                    state.gone_within(STOP_LIMIT).await;
                }
                drop(step);
                let _ = writeln!(
                    text,
                    "stopped the cluster at {} and everything that ran in it",
                    state.address
                );
                facts["stopped"] = state.address.into();
            }
            // Nothing to stop is what was asked for.
            Err(Error::NotRunning(_)) => {
                let _ = writeln!(text, "no cluster runs from {}", self.data_dir.display());
            }
            Err(error) => return Err(error),
        }
        // One that was killed leaves its pods' processes behind.
        windlass_cluster::clean_up(&self.data_dir)
            .await
            .map_err(at(&self.data_dir))?;
        if self.purge && self.data_dir.exists() {
            // One that is just starting has not said yet that it runs.
            let _lock = FolderLock::take(&self.data_dir)?;
            fs::remove_dir_all(&self.data_dir).map_err(at(&self.data_dir))?;
            let _ = writeln!(text, "removed {}", self.data_dir.display());
            facts["removed"] = json!(self.data_dir);
        }
        self.output.print(&facts, || text);
        Ok(())
    }
}
