//! Why what is stored cannot be read.

use std::io;
use std::path::{Path, PathBuf};

use super::frame::HeaderError;

/// The data folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use what is stored in {}: {reason}", folder.display())]
pub struct StorageError {
    pub(crate) folder: PathBuf,
    #[source]
    pub(crate) reason: JournalError,
}

impl StorageError {
    /// The folder was read, but the first write to it failed.
    pub fn not_written(folder: &Path, why: &str) -> Self {
        Self {
            folder: folder.to_owned(),
            reason: JournalError::NotWritten(why.to_owned()),
        }
    }
}

/// What is wrong with the files.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    #[error("cannot {verb} {name}: {source}")]
    Io {
        verb: &'static str,
        name: String,
        source: io::Error,
    },
    #[error("{name} cannot be read: {source}")]
    Header { name: String, source: HeaderError },
    #[error(
        "{name} is damaged at byte {offset}, before its end: it held changes that were acknowledged, and no other file has them; restore it from a backup (to start with nothing, move the folder away and keep it)"
    )]
    Damaged { name: String, offset: usize },
    #[error("{0}")]
    NotWritten(String),
    #[error(
        "{0} is missing: restore it from a backup (to start with nothing, move the folder away and keep it)"
    )]
    Missing(String),
    #[error("{name} starts at revision {base}, but what comes before it ends at {revision}")]
    Gap {
        name: String,
        base: u64,
        revision: u64,
    },
}

impl JournalError {
    /// Says what was being done to which file.
    pub(crate) fn io(verb: &'static str, name: &str) -> impl FnOnce(io::Error) -> Self {
        let name = name.to_owned();
        move |source| Self::Io { verb, name, source }
    }
}
