//! `windlass version`.

use clap::Args;
use serde_json::json;

use crate::output::Output;

/// Print the version
#[derive(Args)]
#[command(after_help = "Examples:
  windlass version
  windlass version -o json")]
pub(crate) struct Version {
    #[command(flatten)]
    output: Output,
}

impl Version {
    pub(crate) fn run(self) {
        let version = env!("CARGO_PKG_VERSION");
        let facts = json!({"version": version});
        self.output
            .print(&facts, || format!("windlass {version}\n"));
    }
}
