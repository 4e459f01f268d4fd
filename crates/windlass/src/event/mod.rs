//! [`Event`]: something a person should see about an object.
//!
//! Events are written to `events.k8s.io` beside the reconcile, best effort: a lost event never
//! fails anything, and the same event about the same object becomes a series: counted in one object
//! rather than repeated.

mod recorder;

pub(crate) use self::recorder::{Counts, Recorder, grant};

/// An event about the object being reconciled.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::{Context, Event};
/// # fn example(ctx: &Context<ConfigMap>) {
/// ctx.event(Event::normal("ScaledUp", "scaled from 1 to 3 replicas").action("Scale"));
/// ctx.event(Event::warning("QuotaExceeded", "cannot create pod web-2: quota exceeded"));
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub(crate) warning: bool,
    pub(crate) reason: String,
    pub(crate) action: String,
    pub(crate) note: String,
}

impl Event {
    /// Something happened as it should.
    ///
    /// `reason` says why in CamelCase (`ScaledUp`), `note` in a sentence.
    pub fn normal(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            warning: false,
            reason: reason.into(),
            action: "Reconcile".to_owned(),
            note: note.into(),
        }
    }

    /// Something a person should look at.
    pub fn warning(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            warning: true,
            ..Self::normal(reason, note)
        }
    }

    /// What was done, in CamelCase, when it is more than a reconcile.
    #[must_use]
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = action.into();
        self
    }
}
