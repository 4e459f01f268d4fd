//! What the API server meant by refusing.

use windlass::{Error, Result};

/// Whether something could not be created because its namespace is going.
pub(crate) fn namespace_is_terminating(error: &Error) -> bool {
    error
        .status()
        .and_then(|status| status.details.as_ref())
        .is_some_and(|details| {
            details
                .causes
                .iter()
                .any(|cause| cause.reason == "NamespaceTerminating")
        })
}

/// A creation that somebody else was faster with, or that a namespace on its way out refuses, has
/// not failed: there is nothing left to do.
pub(crate) fn unless_pointless<T>(created: Result<T>) -> Result<()> {
    match created {
        Err(error) if error.is_already_exists() || error.is_not_found() => Ok(()),
        Err(error) if namespace_is_terminating(&error) => Ok(()),
        other => other.map(drop),
    }
}
