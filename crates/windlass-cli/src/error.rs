//! What can go wrong, in one sentence that says what to do.

use std::io;
use std::path::PathBuf;

use windlass_cluster::{ClusterError, FolderError};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("no cluster runs from {}; start one with `windlass up`", .0.display())]
    NotRunning(PathBuf),
    #[error("cannot use {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("the cluster did not start; the end of {}:\n{tail}", log.display())]
    DidNotStart { log: PathBuf, tail: String },
    #[error("cannot {what}: {source}")]
    Api {
        what: String,
        source: Box<kube::Error>,
    },
    #[error(
        "the sample of {operator} did not become available within {seconds} s; look at it with `windlass status`"
    )]
    SampleNotAvailable { operator: String, seconds: u64 },
    #[error(
        "these files are not as they would be written; they are left as they are, and so is everything else:\n{0}"
    )]
    Conflict(String),
    #[error("cargo is not installed; install Rust from https://rustup.rs")]
    NoToolchain,
    #[error(
        "cannot reach the cluster at {url}: {why}; start one with `windlass up`, or choose another with KUBECONFIG"
    )]
    Unreachable { url: String, why: String },
    /// A person ended the command; the text says what is left.
    #[error("interrupted: {0}")]
    Interrupted(String),
    /// Whoever failed has said why.
    #[error("")]
    Told,
    #[error("{0}")]
    Other(String),
}

/// For commands.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Names the file an I/O error is about.
pub(crate) fn at(path: &std::path::Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { path, source }
}

/// Says what was being asked of the API server.
pub(crate) fn doing(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Error {
    let what = what.into();
    move |source| Error::Api {
        what,
        source: Box::new(source),
    }
}

impl Error {
    /// How the command ends: 130 is what shells say of a program that Ctrl-C ended.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Interrupted(_) => 130,
            _ => 1,
        }
    }
}
