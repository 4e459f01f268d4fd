//! Charts as commands take them: a folder or an archive, and values.

use std::path::{Path, PathBuf};

use clap::Args;
use windlass_charts::{Chart, Values, values};

use crate::error::{Error, Result, at};

/// The values that a chart is rendered with.
#[derive(Args)]
pub(crate) struct Given {
    /// A file of values; may be given several times, later files win
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A value, as PATH=VALUE; may be given several times
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// A value that is a string, as PATH=VALUE; may be given several times
    #[arg(long, value_name = "PATH=VALUE")]
    set_string: Vec<String>,
}

impl Given {
    /// The values, of which later ones win.
    pub(crate) fn values(&self) -> Result<Values> {
        let mut given = Values::new();
        for path in &self.files {
            let text = std::fs::read(path).map_err(at(path))?;
            let found = values::read(&text)
                .map_err(|why| Error::Other(format!("cannot read {}: {why}", path.display())))?;
            values::merge(&mut given, found);
        }
        let failed = |flag: &str, text: &str, why: String| {
            Error::Other(format!("cannot parse {flag} {text}: {why}"))
        };
        for text in &self.set {
            values::set(&mut given, text).map_err(|why| failed("--set", text, why))?;
        }
        for text in &self.set_string {
            values::set_string(&mut given, text)
                .map_err(|why| failed("--set-string", text, why))?;
        }
        Ok(given)
    }
}

/// Reads a chart.
pub(crate) fn load(path: &Path) -> Result<Chart> {
    Chart::load(path).map_err(|error| Error::Other(format!("{}: {error}", path.display())))
}
