//! Errors: what failed, with the verb and the object, and what the controller does about it.
//!
//! Every error classifies itself ([`Error::class`]): most are retried with the key's exponential
//! backoff, a conflict is retried soon and quietly (somebody else wrote first, nothing is wrong),
//! and a terminal one waits until something changes.

use std::{error::Error as StdError, fmt};

use kube::core::Status;

use crate::client::NotLeading;

/// The result of everything that talks to the API server or reads a cache.
///
/// ```
/// use windlass::{Error, Result};
///
/// fn port(settings: &str) -> Result<u16> {
///     let (_, port) = settings.split_once(':').ok_or_else(|| Error::terminal("no port"))?;
///     Ok(port.trim().parse()?)
/// }
/// # port("a: 1").unwrap();
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the controller does after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Try again with backoff.
    Retry,
    /// Somebody else wrote first, or the cache is behind: try again with backoff, without alarm.
    Conflict,
    /// Trying again cannot help; wait until something changes.
    Terminal,
    /// Nothing is wrong: something that is watched has to appear or change first.
    Waiting,
}

/// Everything that can go wrong in a reconcile. An error of any library becomes one by `?`.
///
/// ```
/// use windlass::{Error, error::Class};
///
/// fn port(text: &str) -> windlass::Result<u16> {
///     if text.is_empty() {
///         return Err(Error::terminal("the port is empty"));   // not retried until something changes
///     }
///     Ok(text.parse()?)                                       // retried with backoff
/// }
///
/// assert_eq!(port("").unwrap_err().class(), Class::Terminal);
/// assert_eq!(port("http").unwrap_err().class(), Class::Retry);
/// ```
#[derive(Debug)]
pub enum Error {
    /// The API server refused, or could not be reached.
    Api {
        /// The verb of the request, such as `apply` or `delete`.
        verb: &'static str,
        /// The object, as `deployments.apps default/cache`.
        object: String,
        /// What the client reported.
        source: Box<kube::Error>,
    },
    /// An object of the wanted name exists and is not controlled by the object being reconciled.
    NotOurs {
        /// The object that exists.
        object: String,
        /// Its controller, or `nobody`.
        owner: String,
    },
    /// A handle was asked for more than its declaration allows.
    NotDeclared {
        /// The controller that asked.
        controller: String,
        /// The verb it needs.
        verb: &'static str,
        /// The resource, with its subresource.
        resource: String,
    },
    /// The reconciled object is being deleted, or gone, though the cache does not show it yet.
    Deleted {
        /// The object.
        object: String,
    },
    /// The cache did not show a write of our own in time.
    Stale {
        /// The object that was written.
        object: String,
        /// How long the read waited.
        seconds: u64,
    },
    /// Some caches did not get their first list in time.
    NotSynced {
        /// The kinds that are missing.
        kinds: String,
        /// How long was waited.
        seconds: u64,
    },
    /// An object could not be decoded into, or encoded from, its type.
    Codec {
        /// `decode` or `encode`.
        verb: &'static str,
        /// The object.
        object: String,
        /// What serde reported.
        source: serde_json::Error,
    },
    /// A reconcile took longer than its limit.
    Timeout {
        /// The limit.
        seconds: u64,
    },
    /// A reconcile panicked.
    Panic {
        /// The panic's message.
        message: String,
    },
    /// A request made with raw client access failed.
    Client(Box<kube::Error>),
    /// The author says that trying again cannot help.
    Terminal(String),
    /// Something that is watched has to appear or change first.
    Waiting {
        /// One word in `CamelCase`.
        reason: String,
        /// A sentence.
        message: String,
    },
    /// Any other failure, retried.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api {
                verb,
                object,
                source,
            } => write!(f, "cannot {verb} {object}: {}", reason(source)),
            Self::NotOurs { object, owner } => {
                write!(f, "{object} is not ours: it is controlled by {owner}")
            }
            Self::NotDeclared {
                controller,
                verb,
                resource,
            } => write!(
                f,
                "{controller} did not declare that it may {verb} {resource}"
            ),
            Self::Deleted { object } => write!(f, "{object} is being deleted"),
            Self::Stale { object, seconds } => write!(
                f,
                "the cache did not show the write to {object} within {seconds} s"
            ),
            Self::NotSynced { kinds, seconds } => write!(
                f,
                "timed out after {seconds} s waiting for caches to sync: {kinds}"
            ),
            Self::Codec {
                verb,
                object,
                source,
            } => write!(f, "cannot {verb} {object}: {source}"),
            Self::Timeout { seconds } => {
                write!(f, "reconcile did not finish within {seconds} s")
            }
            Self::Panic { message } => write!(f, "reconcile panicked: {message}"),
            Self::Client(source) => write!(f, "request failed: {}", reason(source)),
            Self::Terminal(message) | Self::Waiting { message, .. } => f.write_str(message),
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl Error {
    /// A failure that a retry cannot fix: the object is not reconciled again until something
    /// changes.
    pub fn terminal(message: impl Into<String>) -> Self {
        Self::Terminal(message.into())
    }

    /// Not a failure: something that is watched has to appear or change first, as in
    /// [`Action::waiting`](crate::Action::waiting). As an error it passes through `?`, and a
    /// dependent can return it.
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Waiting {
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// Any other failure: retried with backoff.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }

    /// This error as a [`std::error::Error`], with its sources.
    pub fn into_std(self) -> Box<dyn StdError + Send + Sync> {
        Box::new(AsStd(self))
    }

    pub(crate) fn api(verb: &'static str, object: impl Into<String>, source: kube::Error) -> Self {
        Self::Api {
            verb,
            object: object.into(),
            source: Box::new(source),
        }
    }

    /// What the controller does after this error.
    pub fn class(&self) -> Class {
        match self {
            // Another's object stays another's until it changes, and its change wakes the key.
            Self::Terminal(_) | Self::NotDeclared { .. } | Self::NotOurs { .. } => Class::Terminal,
            Self::Waiting { .. } => Class::Waiting,
            // Nothing is wrong: the next attempt starts when the watch has caught up.
            Self::Stale { .. } | Self::Deleted { .. } => Class::Conflict,
            _ if self.is_conflict() || self.is_not_leading() => Class::Conflict,
            // An invalid object stays invalid until the intent changes; retrying is only noise.
            _ if self.status().is_some_and(Status::is_invalid) => Class::Terminal,
            _ => Class::Retry,
        }
    }

    /// The API server's answer, if there was one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Api { source, .. } | Self::Client(source) => match source.as_ref() {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            _ => None,
        }
    }

    /// Something has to appear or change first.
    pub fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting { .. })
    }

    /// The object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(|status| status.code == 404)
    }

    /// An object of that name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(Status::is_already_exists)
    }

    /// The object changed since it was read (or a precondition does not hold any more).
    pub fn is_conflict(&self) -> bool {
        self.status()
            .is_some_and(|status| status.code == 409 && !status.is_already_exists())
    }

    /// The write was not sent, because this process does not hold the lease.
    pub fn is_not_leading(&self) -> bool {
        let (Self::Api { source, .. } | Self::Client(source)) = self else {
            return false;
        };
        matches!(source.as_ref(), kube::Error::Service(error) if error.is::<NotLeading>())
    }

    /// The operator's role does not allow it.
    pub fn is_forbidden(&self) -> bool {
        self.status().is_some_and(|status| status.code == 403)
    }
}

/// An error of any library passes through `?`. That is why [`Error`] is no
/// [`std::error::Error`] itself; [`Error::into_std`] makes one of it.
impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let error: Box<dyn StdError + Send + Sync> = Box::new(error);
        match error.downcast() {
            Ok(error) => Self::Client(error),
            Err(error) => match error.downcast::<AsStd>() {
                Ok(error) => error.0,
                Err(error) => Self::Other(error),
            },
        }
    }
}

/// An [`Error`] where a [`std::error::Error`] is asked for.
#[derive(Debug)]
struct AsStd(Error);

impl fmt::Display for AsStd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for AsStd {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0 {
            Error::Api { source, .. } | Error::Client(source) => Some(source.as_ref()),
            Error::Codec { source, .. } => Some(source),
            Error::Other(error) => error.source(),
            _ => None,
        }
    }
}

impl From<Error> for Box<dyn StdError + Send + Sync> {
    fn from(error: Error) -> Self {
        error.into_std()
    }
}

impl From<Error> for Box<dyn StdError> {
    fn from(error: Error) -> Self {
        error.into_std()
    }
}

/// The server's message alone where there is one: the rest of kube's rendering is for debugging.
fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => {
            if status.message.is_empty() {
                status.reason.clone()
            } else {
                status.message.clone()
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign() -> Result<u8> {
        Ok("300".parse::<u8>()?)
    }

    fn own() -> Result<(), Box<dyn StdError + Send + Sync>> {
        Err(Error::terminal("no such plan"))?;
        Ok(())
    }

    #[test]
    fn error_of_another_library_passes_through_the_question_mark_and_is_retried() {
        let error = foreign().unwrap_err();
        assert_eq!(error.class(), Class::Retry);
        assert_eq!(error.to_string(), "number too large to fit in target type");
    }

    #[test]
    fn client_error_keeps_its_status() {
        let status = Status::failure("gone", "NotFound").with_code(404);
        let error = Error::from(kube::Error::Api(status.boxed()));
        assert!(error.is_not_found());
    }

    #[test]
    fn error_keeps_its_class_through_std_and_back() {
        let error = own().unwrap_err();
        assert_eq!(error.to_string(), "no such plan");
        let back = match error.downcast::<AsStd>() {
            Ok(error) => Error::from(*error),
            Err(other) => Error::Other(other),
        };
        assert_eq!(back.class(), Class::Terminal);
    }
}
