//! `windlass manifests`, `install`, `uninstall` and `explain`: what the operator's program knows.

use std::path::Path;

use clap::Args;

use crate::cluster;
use crate::error::Result;
use crate::interrupt::Signals;
use crate::output::Output;
use crate::program::{Program, Task};

/// Write config/ and dist/install.yaml from the code
#[derive(Args)]
#[command(after_help = "Examples:
  windlass manifests
  windlass manifests --check   # in CI: fails when they are out of date")]
pub(crate) struct Manifests {
    /// Write nothing; fail when what is there is out of date, and say which files
    #[arg(long)]
    check: bool,
    /// The image of the operator's program
    #[arg(long)]
    image: Option<String>,
    /// The namespace the operator shall run in
    #[arg(long)]
    namespace: Option<String>,
    #[command(flatten)]
    output: Output,
}

impl Manifests {
    pub(crate) async fn run(self) -> Result<()> {
        let mut signals = Signals::listen()?;
        let program = Program::build(Path::new("."), None, &mut signals).await?;
        let mut arguments = vec!["manifests".to_owned(), "--out".to_owned(), ".".to_owned()];
        if self.check {
            arguments.push("--check".to_owned());
        }
        for (flag, value) in [("--image", self.image), ("--namespace", self.namespace)] {
            arguments.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
        }
        arguments.extend(json(self.output));
        let task = Task {
            arguments,
            doing: "deriving the manifests",
            left: "the manifests are as they were",
        };
        program.obey(task, &mut signals).await?;
        if self.output.is_json() {
            return Ok(());
        }
        if self.check {
            println!("The manifests are current.");
        } else {
            println!("The manifests are in config/ and dist/install.yaml.");
            println!(
                "Action: windlass install && windlass run, or kubectl apply --server-side -f dist/install.yaml"
            );
        }
        Ok(())
    }
}

/// Install the operator's CRDs into the cluster of the current kubeconfig
#[derive(Args)]
#[command(after_help = "Examples:
  windlass install
  windlass install --force   # although objects or clients that are there would break")]
pub(crate) struct Install {
    /// Install also what breaks objects or clients that are there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    output: Output,
}

impl Install {
    pub(crate) async fn run(self) -> Result<()> {
        // Nobody wants to wait for a build to hear that there is no cluster.
        cluster::reached().await?;
        let mut signals = Signals::listen()?;
        let program = Program::build(Path::new("."), None, &mut signals).await?;
        let force = self.force.then(|| "--force".to_owned());
        let arguments = ["install".to_owned()].into_iter().chain(force);
        let task = Task {
            arguments: arguments.chain(json(self.output)).collect(),
            doing: "installing the definitions",
            left: "some of the definitions may be installed; `windlass install` installs the rest",
        };
        program.obey(task, &mut signals).await
    }
}

/// Remove the operator's CRDs, and with them every object of these kinds
#[derive(Args)]
#[command(after_help = "Example:
  windlass uninstall")]
pub(crate) struct Uninstall {
    #[command(flatten)]
    output: Output,
}

impl Uninstall {
    pub(crate) async fn run(self) -> Result<()> {
        cluster::reached().await?;
        let mut signals = Signals::listen()?;
        let program = Program::build(Path::new("."), None, &mut signals).await?;
        let arguments = ["uninstall".to_owned()].into_iter();
        let task = Task {
            arguments: arguments.chain(json(self.output)).collect(),
            doing: "removing the definitions",
            left: "some of the definitions may be removed; `windlass uninstall` removes the rest",
        };
        program.obey(task, &mut signals).await
    }
}

/// Say what the operator watches, owns and may do, and why
#[derive(Args)]
#[command(after_help = "Example:
  windlass explain")]
pub(crate) struct Explain {
    #[command(flatten)]
    output: Output,
}

impl Explain {
    pub(crate) async fn run(self) -> Result<()> {
        let mut signals = Signals::listen()?;
        let program = Program::build(Path::new("."), None, &mut signals).await?;
        let arguments = ["explain".to_owned()].into_iter();
        let task = Task {
            arguments: arguments.chain(json(self.output)).collect(),
            doing: "asking the operator",
            left: "nothing was changed",
        };
        program.obey(task, &mut signals).await
    }
}

/// The program prints its facts itself.
fn json(output: Output) -> Vec<String> {
    if output.is_json() {
        return vec!["--output".to_owned(), "json".to_owned()];
    }
    Vec::new()
}
