//! `windlass run`: the operator here, against a cluster.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use super::throw_away::ThrowAway;
use crate::cluster;
use crate::error::{Error, Result, at};
use crate::interrupt::{Signals, wait};
use crate::program::Program;

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
        if !self.embedded {
            cluster::reached().await?;
        }
        // Whatever is started from now on has to be ended: no signal may be lost.
        let mut signals = Signals::listen()?;
        let program = Program::build(Path::new("."), None, &mut signals).await?;
        let arguments = ["run".to_owned()].into_iter().chain(self.arguments);
        if !self.embedded {
            return follow(program.command(arguments), &mut signals).await;
        }
        let cluster = ThrowAway::start(self.kubeconfig_out, &mut signals).await?;
        let mut install = program.command(["install"]);
        install.env("KUBECONFIG", &cluster.kubeconfig);
        let ran = match follow(install, &mut signals).await {
            Ok(()) => {
                println!("A throw-away cluster runs; in another terminal:");
                println!("  export KUBECONFIG={}", cluster.kubeconfig.display());
                println!("  kubectl apply -f config/samples/");
                println!("Ctrl-C ends the operator and the cluster.");
                let mut command = program.command(arguments);
                command.env("KUBECONFIG", &cluster.kubeconfig);
                follow(command, &mut signals).await
            }
            refused => refused,
        };
        cluster.end().await;
        ran
    }
}

/// Waits for a program that hears of Ctrl-C as this one does, and ends by itself then.
async fn follow(command: Command, signals: &mut Signals) -> Result<()> {
    let name = command.get_program().to_owned();
    let mut command = tokio::process::Command::from(command);
    let mut child = command
        .kill_on_drop(true)
        .spawn()
        .map_err(at(Path::new(&name)))?;
    let ended = wait(&mut child, signals)
        .await
        .map_err(at(Path::new(&name)))?;
    if ended.status.success() || ended.asked {
        return Ok(());
    }
    Err(Error::Told)
}
