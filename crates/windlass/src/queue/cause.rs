//! [`Cause`]: why a key was woken.

use std::{fmt, sync::Arc};

use crate::{Key, telemetry::Origin};

/// How many causes of one run are kept word for word; the rest is counted.
const KEPT: usize = 4;

/// Something that woke a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// An object changed: itself, or something it owns or reads.
    Changed {
        kind: Arc<str>,
        key: Key,
        change: &'static str,
        /// Which versions, for traces.
        origin: Origin,
    },
    /// The time its reconciler asked for.
    Timer,
    /// Something outside the cluster, by the name of its source.
    Source(Arc<str>),
    /// Looked at again without a reason.
    Resync,
    /// A retry after this many failures in a row.
    Retry { failures: u32 },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed {
                kind, key, change, ..
            } => write!(f, "{kind} {key} {change}"),
            Self::Timer => f.write_str("timer"),
            Self::Source(name) => write!(f, "source {name}"),
            Self::Resync => f.write_str("resync"),
            Self::Retry { failures } => write!(f, "retry {failures}"),
        }
    }
}

impl Cause {
    /// Takes over what is known of an equal cause.
    fn merge(&mut self, equal: Self) {
        if let (Self::Changed { origin, .. }, Self::Changed { origin: other, .. }) = (self, equal) {
            origin.merge(other);
        }
    }
}

/// All causes of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Causes {
    kept: Vec<Cause>,
    more: usize,
}

impl Causes {
    /// The objects whose changes are among them.
    #[cfg(feature = "otel")]
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&str, &Key, &Origin)> {
        self.kept.iter().filter_map(|cause| match cause {
            Cause::Changed {
                kind, key, origin, ..
            } => Some((&**kind, key, origin)),
            _ => None,
        })
    }

    pub(crate) fn push(&mut self, cause: Cause) {
        if let Some(kept) = self.kept.iter_mut().find(|kept| **kept == cause) {
            kept.merge(cause);
            return;
        }
        if self.kept.len() < KEPT {
            self.kept.push(cause);
        } else {
            self.more += 1;
        }
    }
}

impl Extend<Cause> for Causes {
    fn extend<I: IntoIterator<Item = Cause>>(&mut self, causes: I) {
        for cause in causes {
            self.push(cause);
        }
    }
}

impl IntoIterator for Causes {
    type Item = Cause;
    type IntoIter = std::vec::IntoIter<Cause>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, cause) in self.kept.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{cause}")?;
        }
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        Ok(())
    }
}
