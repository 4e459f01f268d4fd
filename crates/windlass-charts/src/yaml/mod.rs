//! YAML as Helm reads and writes it.
//!
//! Helm reads values, charts and rendered manifests with a reader of YAML 1.1 that knows some of
//! YAML 1.2, and writes what `toYaml` gives with the writer that belongs to it. Both are followed
//! to the letter: which plain scalars are numbers or booleans, in which order keys come, what is
//! quoted and how, where long lines are folded, and what a reader's error says.
//!
//! | module | what |
//! | --- | --- |
//! | `scan` | text to tokens |
//! | `compose` | tokens to nodes |
//! | `resolve` | what a plain scalar means |
//! | `read` | nodes to values |
//! | `emit` | values to text |

mod compose;
mod emit;
mod read;
mod resolve;
mod scan;

pub(crate) use emit::{Dialect, emit};
pub(crate) use read::{Yaml, float_text, read, to_json, to_object};
