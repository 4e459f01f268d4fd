//! Why an image cannot be used.

use std::io;
use std::path::{Path, PathBuf};

/// Why an image cannot be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::sandbox) enum UnpackError {
    /// The machine refused.
    #[error("cannot {verb} {path}: {source}")]
    Io {
        verb: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A document of the layout is not what it should be.
    #[error("cannot parse {path}: {source}")]
    Malformed {
        path: PathBuf,
        source: serde_json::Error,
    },
    /// A name of a blob that names none.
    #[error("invalid digest \"{0}\"")]
    Digest(String),
    /// A blob is another than the one it is kept as.
    #[error("cannot use blob {wanted} of {layout}: its content has the digest {found}")]
    Changed {
        layout: PathBuf,
        wanted: String,
        found: String,
    },
    /// A document that no image needs that large.
    #[error("cannot read {path}: it is larger than {limit} bytes")]
    Document { path: PathBuf, limit: u64 },
    /// A layer is packed in a way that is not known here.
    #[error("cannot unpack {path}: {what} is not supported")]
    Unsupported { path: PathBuf, what: &'static str },
    /// What is in an archive must not be unpacked.
    #[error("cannot unpack \"{entry}\" of {path}: {why}")]
    Entry {
        path: PathBuf,
        entry: String,
        why: String,
    },
    /// It would fill the disk.
    #[error("cannot unpack {path}: it holds more than {limit} {what}")]
    TooLarge {
        path: PathBuf,
        limit: u64,
        what: &'static str,
    },
    /// It is made for others.
    #[error("image \"{0}\" is not for this kind of machine")]
    OtherMachine(String),
}

impl UnpackError {
    pub(super) fn io(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { verb, path, source }
    }
}
