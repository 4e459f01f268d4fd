//! Container logs: how they are written to files, and how `kubectl logs` reads them.
//!
//! One file per run of a container, `<state>/pods/<uid>/containers/<container>/<run>.log`, in the format of
//! the container runtime interface, so that tools that know one know the other:
//!
//! ```text
//! 2026-11-15T16:44:43.123456789Z stdout F a whole line
//! 2026-11-15T16:44:43.223456789Z stderr P the first part of a long line
//! ```

mod format;
mod options;
mod reader;
mod rotation;
mod writer;

pub use format::{Line, Stream, encode};
pub use options::{LogOptions, OptionError};
pub use reader::{Progress, Reader};
pub(crate) use rotation::remove;
pub use writer::{Heard, Writer};
