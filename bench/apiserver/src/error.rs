//! What can go wrong while measuring.

use std::io;

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// A file, a process or a connection.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
    /// Certificates could not be made or read.
    #[error("certificates: {0}")]
    Certificates(String),
    /// A subject ended, or did not serve in time.
    #[error("{0} does not serve; its log: {1}")]
    NotServing(String, String),
    /// A request that must succeed did not.
    #[error("{0} answered {1}: {2}")]
    Refused(String, u16, String),
}

pub(crate) type Result<T> = std::result::Result<T, BenchError>;

/// Says what was being done when an I/O error came.
pub(crate) trait During<T> {
    fn during(self, what: impl Into<String>) -> Result<T>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|error| BenchError::Io(what.into(), error))
    }
}
