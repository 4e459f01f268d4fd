//! `windlass init`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::error::Result;
use crate::output::Output;
use crate::scaffold::{self, NewProject, describe, facts};

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
    /// A checkout of Windlass to take its crates from, instead of the published ones; the one
    /// that this program was built in unless given
    #[arg(long, value_name = "DIR", env = "WINDLASS_PATH")]
    windlass_path: Option<PathBuf>,
    /// The project's folder
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    output: Output,
}

impl Init {
    pub(crate) fn run(self) -> Result<()> {
        let (root, project, written) = scaffold::init(&NewProject {
            folder: self.folder,
            domain: self.domain,
            name: self.name,
            repo: self.repo,
            windlass: self.windlass_path.or_else(own_checkout),
        })?;
        let name = &project.project_name;
        let facts = json!({"name": name, "domain": project.domain, "folder": root, "files": facts(&written)});
        self.output.print(&facts, || {
            let mut text = describe(&written);
            if written.is_empty() {
                let _ = writeln!(text, "{name} is in {} already.", root.display());
            } else {
                let _ = writeln!(text, "Made {name} in {}.", root.display());
            }
            let enter = match std::env::current_dir() {
                Ok(here) if here == root => String::new(),
                Ok(here) => {
                    let folder = root.strip_prefix(here).unwrap_or(&root);
                    format!("cd {} && ", folder.display())
                }
                Err(_) => format!("cd {} && ", root.display()),
            };
            let _ = writeln!(
                text,
                "Action: {enter}windlass create api --group cache --version v1 --kind Memcached"
            );
            text
        });
        Ok(())
    }
}

/// The checkout that this program was built in, if it still lies there: its crates are the ones
/// that go with it.
fn own_checkout() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    // <checkout>/target/<profile>/windlass
    let checkout = program.ancestors().nth(3)?;
    let is_ours = ["windlass", "windlass-cluster"].iter().all(|name| {
        checkout
            .join("crates")
            .join(name)
            .join("Cargo.toml")
            .is_file()
    });
    is_ours.then(|| checkout.to_owned())
}
