//! How facts are printed: for people, or as JSON for programs.

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::print;
use crate::Result;

/// How a command prints what it found or did.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct Output {
    /// Print facts as JSON, for programs.
    #[arg(short = 'o', long = "output", value_enum, value_name = "FORMAT")]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object.
    Json,
}

impl Output {
    /// Prints either.
    pub(super) fn print(self, facts: &Value, text: &str) -> Result<()> {
        match self.format {
            Some(Format::Json) => print(&format!("{facts:#}\n")),
            None => print(text),
        }
    }
}

/// Lines, each with its end.
pub(super) fn as_text(lines: &[String]) -> String {
    lines
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect()
}
