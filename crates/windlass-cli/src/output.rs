//! How facts are printed: for people, or as JSON for programs.

use clap::{Args, ValueEnum};
use serde_json::Value;

/// How a command prints what it found or did.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Output {
    /// Print facts as JSON, for programs
    #[arg(short = 'o', long = "output", value_enum, value_name = "FORMAT")]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object
    Json,
}

impl From<Option<Format>> for Output {
    fn from(format: Option<Format>) -> Self {
        Self { format }
    }
}

impl Output {
    pub(crate) fn is_json(self) -> bool {
        self.format == Some(Format::Json)
    }

    /// Prints either; the text is made only when it is wanted.
    pub(crate) fn print(self, facts: &Value, text: impl FnOnce() -> String) {
        if self.is_json() {
            println!("{facts:#}");
        } else {
            print!("{}", text());
        }
    }
}
