//! `windlass run`: the operator here, against a cluster.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use crate::error::{Error, Result, at};
use crate::program::Program;
use crate::progress::Step;

/// Build the operator and run it here, against the current kubeconfig
#[derive(Args)]
#[command(after_help = "Examples:
  windlass run                        # against the cluster of the current kubeconfig
  windlass run --embedded             # on a throw-away cluster, with the CRDs installed
  windlass run -- --leader-elect      # what follows -- is for the operator's own `run`")]
pub(crate) struct Run {
    /// Start a throw-away cluster, install the CRDs there, and run against it
    #[arg(long)]
    embedded: bool,
    /// Where to write the kubeconfig of the throw-away cluster
    #[arg(long, value_name = "FILE", requires = "embedded")]
    kubeconfig_out: Option<PathBuf>,
    /// For the operator's own `run`
    #[arg(last = true)]
    arguments: Vec<String>,
}

impl Run {
    pub(crate) async fn run(self) -> Result<()> {
        let program = Program::build(Path::new("."), false)?;
        let arguments = ["run".to_owned()].into_iter().chain(self.arguments);
        if !self.embedded {
            return wait(program.command(arguments)).await;
        }
        let cluster = ThrowAway::start(self.kubeconfig_out)?;
        let mut install = program.command(["install"]);
        let installed = install
            .env("KUBECONFIG", &cluster.kubeconfig)
            .status()
            .map_err(at(&program.path))?;
        if !installed.success() {
            return Err(Error::Told);
        }
        println!("A throw-away cluster runs; in another terminal:");
        println!("  export KUBECONFIG={}", cluster.kubeconfig.display());
        println!("  kubectl apply -f config/samples/");
        println!("Ctrl-C ends the operator and the cluster.");
        let mut command = program.command(arguments);
        command.env("KUBECONFIG", &cluster.kubeconfig);
        wait(command).await
    }
}

/// Waits for a program that hears of Ctrl-C and SIGTERM as this one does, and ends by itself then.
async fn wait(command: Command) -> Result<()> {
    let name = command.get_program().to_owned();
    let mut command = tokio::process::Command::from(command);
    let mut child = command
        .kill_on_drop(true)
        .spawn()
        .map_err(at(Path::new(&name)))?;
    let kinds = [
        tokio::signal::unix::SignalKind::interrupt(),
        tokio::signal::unix::SignalKind::terminate(),
    ];
    let [mut interrupt, mut terminate] = kinds.map(|kind| {
        tokio::signal::unix::signal(kind)
            .map_err(|error| Error::Other(format!("cannot listen for signals: {error}")))
    });
    let (interrupt, terminate) = match (&mut interrupt, &mut terminate) {
        (Ok(interrupt), Ok(terminate)) => (interrupt, terminate),
        _ => return Err(Error::Other("cannot listen for signals".to_owned())),
    };
    let mut asked = false;
    let status = loop {
        tokio::select! {
            biased;
            status = child.wait() => break status.map_err(at(Path::new(&name)))?,
            // A terminal tells the whole group; the program has heard of it too.
            _ = interrupt.recv() => asked = true,
            _ = terminate.recv() => {
                asked = true;
                end(&child);
            }
        }
    };
    if status.success() || asked {
        return Ok(());
    }
    Err(Error::Told)
}

/// Asks a program to end.
fn end(child: &tokio::process::Child) {
    let pid = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// A cluster that goes when this value does.
struct ThrowAway {
    folder: tempfile::TempDir,
    windlass: PathBuf,
    kubeconfig: PathBuf,
}

impl ThrowAway {
    fn start(kubeconfig: Option<PathBuf>) -> Result<Self> {
        let step = Step::start("starting a throw-away cluster");
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
        };
        let started = cluster
            .command("up")
            .args(["--detach", "--listen", "127.0.0.1:0", "--kubeconfig-out"])
            .arg(&cluster.kubeconfig)
            .stdout(Stdio::null())
            .status()
            .map_err(at(&cluster.windlass))?;
        drop(step);
        if !started.success() {
            return Err(Error::Told);
        }
        Ok(cluster)
    }

    fn command(&self, what: &str) -> Command {
        let mut command = Command::new(&self.windlass);
        command.arg(what).arg("--data-dir").arg(self.folder.path());
        command
    }
}

impl Drop for ThrowAway {
    fn drop(&mut self) {
        let stopped = self.command("down").stdout(Stdio::null()).status();
        if !stopped.is_ok_and(|status| status.success()) {
            eprintln!(
                "the throw-away cluster may still run; end it with `windlass down --data-dir {}`",
                self.folder.path().display()
            );
        }
    }
}
