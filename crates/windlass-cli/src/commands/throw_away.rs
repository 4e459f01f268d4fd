//! A cluster for one run of an operator: it is gone with it, and so is everything it wrote.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::error::{Error, Result, at};
use crate::interrupt::{self, Signals};
use crate::progress::Step;

/// A cluster in a temporary folder. It goes when it is told to, or when this value is dropped
/// because something failed.
pub(super) struct ThrowAway {
    folder: tempfile::TempDir,
    windlass: PathBuf,
    pub(super) kubeconfig: PathBuf,
    ended: bool,
}

impl ThrowAway {
    pub(super) async fn start(kubeconfig: Option<PathBuf>, signals: &mut Signals) -> Result<Self> {
        let _step = Step::start("starting a throw-away cluster");
        let folder = tempfile::tempdir().map_err(at(&std::env::temp_dir()))?;
        let windlass = std::env::current_exe().map_err(at(Path::new("windlass")))?;
        let kubeconfig = match kubeconfig {
            Some(path) => std::path::absolute(&path).map_err(at(&path))?,
            None => folder.path().join("kubeconfig"),
        };
        let cluster = Self {
            folder,
            windlass,
            kubeconfig,
            ended: false,
        };
        let mut up = cluster.command("up");
        up.args(["--detach", "--listen", "127.0.0.1:0", "--kubeconfig-out"])
            .arg(&cluster.kubeconfig);
        let mut up = up.spawn().map_err(at(&cluster.windlass))?;
        let Some(started) = signals.unless(up.wait()).await else {
            // It takes back what it began.
            interrupt::pass_on(&up);
            let _ = up.wait().await;
            return Err(Error::Interrupted("nothing was started".to_owned()));
        };
        if !started.map_err(at(&cluster.windlass))?.success() {
            return Err(Error::Told);
        }
        Ok(cluster)
    }

    /// A group of its own: Ctrl-C in this terminal is this process's to deal with.
    fn command(&self, what: &str) -> Command {
        let mut command = Command::new(&self.windlass);
        command
            .arg(what)
            .arg("--data-dir")
            .arg(self.folder.path())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Ends the cluster and removes its folder.
    pub(super) async fn end(mut self) {
        let _step = Step::start("ending the throw-away cluster");
        let stopped = self.command("down").status().await;
        self.told(stopped.is_ok_and(|status| status.success()));
    }

    fn told(&mut self, stopped: bool) {
        self.ended = true;
        if !stopped {
            eprintln!(
                "the throw-away cluster may still run; end it with `windlass down --data-dir {}`",
                self.folder.path().display()
            );
        }
    }
}

impl Drop for ThrowAway {
    fn drop(&mut self) {
        if !self.ended {
            let stopped = self.command("down").into_std().status();
            self.told(stopped.is_ok_and(|status| status.success()));
        }
    }
}
