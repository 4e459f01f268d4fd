//! `windlass init`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::error::{Error, Result};
use crate::helm::{self, NewHelmApi, NewHelmProject};
use crate::output::Output;
use crate::scaffold::{self, NewProject, describe, facts};

/// Make a new operator project that compiles, tests green and runs at once
#[derive(Args)]
#[command(after_help = "Examples:
  windlass init --domain example.com --repo github.com/me/my-operator
  windlass init --domain example.com my-operator && cd my-operator
  windlass init --plugins=helm --domain example.com --group apps --kind Web --helm-chart ./web webs")]
pub(crate) struct Init {
    /// The domain that the groups of the project's kinds end in
    #[arg(long)]
    domain: String,
    /// What the project's operator is made of: `rust`, or `helm` for Helm charts without code
    #[arg(long, value_name = "PLUGIN", default_value = "rust", value_parser = plugin)]
    plugins: Plugin,
    /// With helm: the chart of a first kind, a folder or a .tgz
    #[arg(long, value_name = "PATH", requires = "kind")]
    helm_chart: Option<PathBuf>,
    /// With helm: the group of a first kind, without the domain
    #[arg(long, requires = "kind")]
    group: Option<String>,
    /// With helm: the version of a first kind
    #[arg(long, default_value = "v1alpha1")]
    version: String,
    /// With helm: a first kind, in CamelCase
    #[arg(long)]
    kind: Option<String>,
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
        if self.plugins == Plugin::Helm {
            return self.run_helm();
        }
        if self.kind.is_some() {
            return Err(Error::Other(
                "--kind is for --plugins=helm; add kinds with `windlass create api`".to_owned(),
            ));
        }
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

/// What a project is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plugin {
    Rust,
    Helm,
}

/// The names that operator-sdk has for it are known too.
fn plugin(name: &str) -> Result<Plugin, String> {
    match name
        .trim_end_matches("/v1")
        .trim_end_matches(".sdk.operatorframework.io")
    {
        "rust" => Ok(Plugin::Rust),
        "helm" => Ok(Plugin::Helm),
        _ => Err("known are rust and helm".to_owned()),
    }
}

impl Init {
    /// A project of Helm charts, perhaps with a first kind.
    fn run_helm(self) -> Result<()> {
        let (root, name, mut written) = helm::init(&NewHelmProject {
            folder: self.folder,
            domain: self.domain.clone(),
            name: self.name,
        })?;
        let mut next =
            "`windlass create api --group apps --version v1 --kind Web --helm-chart PATH`, ";
        if let Some(kind) = self.kind {
            let new = NewHelmApi {
                group: self.group.unwrap_or_default(),
                version: self.version,
                kind,
                chart: self.helm_chart,
            };
            let (_, mut more) = helm::create_api(&root, &new)?;
            // What was written a moment ago is new.
            more.retain(|one| !written.iter().any(|known| known.path() == one.path()));
            written.extend(more);
            next = "";
        }
        let facts =
            json!({"name": name, "domain": self.domain, "folder": root, "files": facts(&written)});
        self.output.print(&facts, || {
            format!(
                "{}Made {name} in {}.\nNext, there: {next}`windlass manifests` and `windlass run --embedded`.\n",
                describe(&written),
                root.display()
            )
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
