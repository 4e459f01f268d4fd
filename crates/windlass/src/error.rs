//! [`Error`]: what went wrong, with the verb and the object, and what to do about it.
//!
//! Every error classifies itself ([`Error::class`]): most are retried with the key's exponential
//! backoff, a conflict is retried soon and quietly (somebody else wrote first, nothing is wrong),
//! and a terminal one waits until something changes.

use kube::core::Status;

use crate::client::NotLeading;

/// The result of everything that talks to the API server or reads a cache.
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

/// Everything that can go wrong in a reconcile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or could not be reached.
    #[error("cannot {verb} {object}: {}", reason(source))]
    Api {
        /// The verb of the request, such as `apply` or `delete`.
        verb: &'static str,
        /// The object, as `deployments.apps default/cache`.
        object: String,
        /// What the client reported.
        #[source]
        source: Box<kube::Error>,
    },
    /// An object of the wanted name exists and is not controlled by the object being reconciled.
    #[error("{object} is not ours: it is controlled by {owner}")]
    NotOurs {
        /// The object that exists.
        object: String,
        /// Its controller, or `nobody`.
        owner: String,
    },
    /// A handle was asked for more than its declaration allows.
    #[error("{controller} did not declare that it may {verb} {resource}")]
    NotDeclared {
        /// The controller that asked.
        controller: String,
        /// The verb it needs.
        verb: &'static str,
        /// The resource, with its subresource.
        resource: String,
    },
    /// The cache did not show a write of our own in time.
    #[error("the cache did not show the write to {object} within {seconds} s")]
    Stale {
        /// The object that was written.
        object: String,
        /// How long the read waited.
        seconds: u64,
    },
    /// Some caches did not get their first list in time.
    #[error("no first list of {kinds} within {seconds} s")]
    NotSynced {
        /// The kinds that are missing.
        kinds: String,
        /// How long was waited.
        seconds: u64,
    },
    /// An object could not be decoded into, or encoded from, its type.
    #[error("cannot {verb} {object}: {source}")]
    Codec {
        /// `decode` or `encode`.
        verb: &'static str,
        /// The object.
        object: String,
        /// What serde reported.
        #[source]
        source: serde_json::Error,
    },
    /// A reconcile took longer than its limit.
    #[error("reconcile did not finish within {seconds} s")]
    Timeout {
        /// The limit.
        seconds: u64,
    },
    /// A reconcile panicked.
    #[error("reconcile panicked: {message}")]
    Panic {
        /// The panic's message.
        message: String,
    },
    /// A request made with raw client access failed.
    #[error("request failed: {}", reason(.0))]
    Client(Box<kube::Error>),
    /// The author says that trying again cannot help.
    #[error("{0}")]
    Terminal(String),
    /// Something that is watched has to appear or change first.
    #[error("{message}")]
    Waiting {
        /// One word in `CamelCase`.
        reason: String,
        /// A sentence.
        message: String,
    },
    /// Any other failure, retried.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
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
            Self::Stale { .. } => Class::Conflict,
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

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Client(Box::new(error))
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
