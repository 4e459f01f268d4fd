//! [`Delete`]: how an object is deleted.

use kube::{
    Resource,
    api::{DeleteParams, Preconditions, PropagationPolicy},
};

/// How to delete: what becomes of the object's dependents, and under which preconditions.
///
/// The object's uid is always a precondition, so that a new object of the same name is safe.
///
/// ```
/// use windlass::handle::Delete;
///
/// let at_once = Delete::background();
/// let after_what_it_owns = Delete::foreground();
/// # assert_ne!(at_once, after_what_it_owns);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Delete {
    propagation: Propagation,
    grace_seconds: Option<u32>,
    unchanged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Propagation {
    #[default]
    Background,
    Foreground,
    Orphan,
}

impl Delete {
    /// The object goes first, its dependents after it.
    pub fn background() -> Self {
        Self::default()
    }

    /// The dependents go first.
    pub fn foreground() -> Self {
        Self {
            propagation: Propagation::Foreground,
            ..Self::default()
        }
    }

    /// The dependents stay.
    pub fn orphan() -> Self {
        Self {
            propagation: Propagation::Orphan,
            ..Self::default()
        }
    }

    /// Gives a pod this many seconds to end; zero removes it at once.
    #[must_use]
    pub fn grace(mut self, seconds: u32) -> Self {
        self.grace_seconds = Some(seconds);
        self
    }

    /// Only if the object has not changed since it was read.
    #[must_use]
    pub fn if_unchanged(mut self) -> Self {
        self.unchanged = true;
        self
    }

    pub(crate) fn params<K: Resource>(&self, object: &K) -> DeleteParams {
        let meta = object.meta();
        let version = meta.resource_version.clone().filter(|_| self.unchanged);
        self.params_for(meta.uid.as_deref().unwrap_or_default(), version)
    }

    /// As [`params`](Self::params), of an object as JSON.
    pub(crate) fn params_of(&self, uid: &str, version: &str) -> DeleteParams {
        let version = Some(version.to_owned());
        self.params_for(uid, version.filter(|it| self.unchanged && !it.is_empty()))
    }

    /// For many objects: no preconditions.
    pub(crate) fn params_for_all(&self) -> DeleteParams {
        DeleteParams {
            preconditions: None,
            ..self.params_for("", None)
        }
    }

    pub(crate) fn params_for(&self, uid: &str, resource_version: Option<String>) -> DeleteParams {
        DeleteParams {
            grace_period_seconds: self.grace_seconds,
            propagation_policy: Some(match self.propagation {
                Propagation::Background => PropagationPolicy::Background,
                Propagation::Foreground => PropagationPolicy::Foreground,
                Propagation::Orphan => PropagationPolicy::Orphan,
            }),
            preconditions: Some(Preconditions {
                uid: (!uid.is_empty()).then(|| uid.to_owned()),
                resource_version,
            }),
            ..DeleteParams::default()
        }
    }
}
