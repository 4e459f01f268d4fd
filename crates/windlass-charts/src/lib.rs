//! Helm charts rendered in Rust, without a cluster.
//!
//! A [`Chart`] and values become a [`Rendered`]: objects in the order of installation, hooks, CRDs
//! and notes. The judge is Helm: what it prints for a chart is what this prints, byte for byte.
//!
//! ```
//! use windlass_charts::{Chart, File, Options, render};
//!
//! let file = |name: &str, text: &str| File { name: name.into(), data: text.into() };
//! let chart = Chart::from_files(vec![
//!     file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
//!     file("values.yaml", "port: 80\n"),
//!     file("templates/service.yaml", "kind: Service\nport: {{ .Values.port }}\n"),
//! ])?;
//! let rendered = render(&chart, &serde_json::Map::new(), &Options::default())?;
//! assert_eq!(rendered.manifest(), "---\n# Source: web/templates/service.yaml\nkind: Service\nport: 80\n\n");
//! # Ok::<(), windlass_charts::Error>(())
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | [`chart`] | folders and archives to charts |
//! | [`values`] | values of charts, dependencies, files and `--set` |
//! | `schema` | `values.schema.json` |
//! | `template`, `functions` | Go's templates and the functions they have |
//! | `yaml`, `json`, `toml` | text to values and back, as Go does it |
//! | `render`, `manifest` | all of it together |
//! | `survey` | what a chart may need of a cluster, whatever its values |

// Texts are put together from many small parts, and nothing here is written often enough to matter.
#![allow(
    clippy::format_push_string,
    clippy::format_collect,
    clippy::naive_bytecount
)]
// All functions of a table have one signature, whether they fail or not.
#![allow(clippy::unnecessary_wraps, clippy::needless_pass_by_value)]
// Flags of formats and names of the mathematics of keys are what they are called there.
#![allow(
    clippy::struct_excessive_bools,
    clippy::fn_params_excessive_bools,
    clippy::many_single_char_names,
    clippy::similar_names
)]
// A `match` on what was found reads better than its inversion.
#![allow(clippy::single_match_else)]
// Helm compares the names of files case by case.
#![allow(clippy::case_sensitive_file_extension_comparisons)]

pub mod chart;
mod der;
mod files;
mod functions;
mod json;
mod layout;
mod limits;
mod manifest;
mod number;
mod quote;
mod render;
mod schema;
mod semver;
mod survey;
mod template;
mod text;
mod toml;
pub mod values;
mod yaml;

use std::io;
use std::path::PathBuf;

pub use chart::{Chart, File};
pub use functions::names as function_names;
pub use limits::Limits;
pub use manifest::{Hook, Manifest, documents};
pub use render::{Capabilities, Options, Rendered, render};
pub use survey::{Need, Purpose, Said, needs};
pub use text::{expand, from_yaml, object_from_yaml, to_yaml};
pub use values::Values;

/// Reads objects of a cluster for templates that look them up.
pub trait Lookup: Send + Sync {
    /// The object of a name, or the list of them if the name is empty; nothing if it is not there.
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<serde_json::Value>, String>;
}

/// Why a chart cannot be read or rendered. The messages are Helm's.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What is there is no chart.
    #[error("{0}")]
    Chart(String),
    /// The values do not fit the chart.
    #[error("{0}")]
    Values(String),
    /// The values do not fit the schemas of the charts.
    #[error(
        "values don't meet the specifications of the schema(s) in the following chart(s):\n{0}"
    )]
    Schema(String),
    /// A template cannot be read or executed.
    #[error("{0}")]
    Template(String),
    /// What the templates made is no YAML.
    #[error("{0}")]
    Manifest(String),
    /// A limit was hit.
    #[error("rendering stopped: {0}")]
    Limit(String),
}
