//! `windlass run`: the operator here, against a cluster.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use super::throw_away::ThrowAway;
use crate::cluster;
use crate::error::{Error, Result, at};
use crate::interrupt::{self, Signals};
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
            return follow(program.command(arguments), &mut signals)
                .await
                .map(drop);
        }
        let cluster = ThrowAway::start(self.kubeconfig_out, &mut signals).await?;
        let mut install = program.command(["install"]);
        install.env("KUBECONFIG", &cluster.kubeconfig);
        let ran = match follow(install, &mut signals).await {
            Ok(End::Asked) => Err(Error::Interrupted("nothing was started".to_owned())),
            Ok(End::Own) => {
                println!("A throw-away cluster runs; in another terminal:");
                println!("  export KUBECONFIG={}", cluster.kubeconfig.display());
                println!("  kubectl apply -f config/samples/");
                println!("Ctrl-C ends the operator and the cluster.");
                let mut command = program.command(arguments);
                command.env("KUBECONFIG", &cluster.kubeconfig);
                follow(command, &mut signals).await.map(drop)
            }
            Err(refused) => Err(refused),
        };
        cluster.end().await;
        ran
    }
}

/// Why a program ended.
enum End {
    Own,
    Asked,
}

/// Runs a program in a group of its own, and waits for it: it hears of every signal from here, once
/// and whenever it comes, and ends by itself then.
async fn follow(command: Command, signals: &mut Signals) -> Result<End> {
    let name = command.get_program().to_owned();
    let mut command = tokio::process::Command::from(command);
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(at(Path::new(&name)))?;
    let mut end = End::Own;
    let status = loop {
        tokio::select! {
            biased;
            _ = signals.asked() => {
                end = End::Asked;
                interrupt::pass_on(&child);
            }
            status = child.wait() => break status.map_err(at(Path::new(&name)))?,
        }
    };
    match end {
        End::Own if !status.success() => Err(Error::Told),
        end => Ok(end),
    }
}
