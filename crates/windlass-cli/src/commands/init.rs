//! `windlass init`.

use std::path::PathBuf;

use clap::Args;

use crate::error::Result;
use crate::scaffold::{self, NewProject, describe};

/// Make a new operator project that compiles, tests green and runs at once
#[derive(Args)]
#[command(after_help = "Examples:
  windlass init --domain example.com --repo github.com/me/my-operator
  windlass init --domain example.com my-operator && cd my-operator")]
pub(crate) struct Init {
    /// The domain that the groups of the project's kinds end in
    #[arg(long)]
    domain: String,
    /// The operator's name; that of the folder unless given
    #[arg(long)]
    name: Option<String>,
    /// The address of the project's repository
    #[arg(long, value_name = "URL")]
    repo: Option<String>,
    /// A checkout of Windlass to take its crates from, instead of the published ones
    #[arg(long, value_name = "DIR", env = "WINDLASS_PATH")]
    windlass_path: Option<PathBuf>,
    /// The project's folder
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
}

impl Init {
    pub(crate) fn run(self) -> Result<()> {
        let (root, project, written) = scaffold::init(&NewProject {
            folder: self.folder,
            domain: self.domain,
            name: self.name,
            repo: self.repo,
            windlass: self.windlass_path,
        })?;
        if written.is_empty() {
            println!("{} is in {} already.", project.project_name, root.display());
        } else {
            print!("{}", describe(&written));
            println!("Made {} in {}.", project.project_name, root.display());
        }
        println!("Next: windlass create api --group cache --version v1 --kind Memcached");
        Ok(())
    }
}
