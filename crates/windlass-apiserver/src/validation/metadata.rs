//! The rules of `metadata`, which are the same for every kind.

use serde_json::Value;

use crate::object::meta;
use crate::object_meta::{common_causes, finalizer_causes, invalid, update_causes};
use crate::registry::resource::Resource;
use crate::status::{Cause, field};

/// What is wrong with the metadata of a new object.
pub(crate) fn create_causes(object: &Value, resource: &Resource) -> Vec<Cause> {
    let check = |name: &str| resource.strategy.name_errors(name);
    let (name, base) = (meta(object, "name"), meta(object, "generateName"));
    let mut causes = Vec::new();
    if !base.is_empty() {
        // A base may end in a dash, as something follows.
        let masked = base.strip_suffix('-').map(|start| format!("{start}a"));
        let wrong = check(masked.as_deref().unwrap_or(base));
        causes.extend(invalid("metadata.generateName", base, wrong));
    }
    if name.is_empty() {
        causes.push(field::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else {
        causes.extend(invalid("metadata.name", name, check(name)));
    }
    if resource.namespaced && meta(object, "namespace").is_empty() {
        causes.push(field::required("metadata.namespace", ""));
    }
    causes.extend(common_causes(object));
    if resource.strategy.metadata_checks().created == Own::WithFinalizers {
        causes.extend(finalizer_causes(object));
    }
    causes
}

/// How the rules of a kind look at the metadata themselves, beside those of all kinds. What is
/// wrong with it is told as often as it is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    Not,
    Plain,
    /// Finalizers must have a domain or be Kubernetes' own.
    WithFinalizers,
}

/// When the rules of a kind look at the metadata.
#[derive(Clone, Copy)]
pub(crate) struct Checks {
    /// In a new object; what is not looked at here is after all else is found right.
    pub(crate) created: Own,
    /// In a change.
    pub(crate) changed: Own,
    /// Once more in the changed object by itself.
    pub(crate) whole: Own,
    /// In a change of the status.
    pub(crate) status: Own,
    /// How often the changed object is looked at by itself before the change is.
    pub(crate) whole_times: u8,
}

impl Checks {
    const fn new(created: Own, changed: Own, whole: Own, status: Own) -> Self {
        Self {
            created,
            changed,
            whole,
            status,
            whole_times: 0,
        }
    }

    /// Those of most kinds.
    pub(crate) const ALL: Self = Self::new(
        Own::WithFinalizers,
        Own::WithFinalizers,
        Own::WithFinalizers,
        Own::WithFinalizers,
    );
    pub(crate) const NONE: Self = Self::new(Own::Not, Own::Not, Own::Not, Own::Not);
    pub(crate) const CUSTOM: Self = Self::new(Own::Plain, Own::Plain, Own::Not, Own::Plain);
    pub(crate) const LEASE: Self = Self::new(Own::Plain, Own::Plain, Own::Not, Own::Not);
    pub(crate) const RUNTIME_CLASS: Self =
        Self::new(Own::Plain, Own::Plain, Own::Plain, Own::Not).whole_first();
    pub(crate) const ADMISSION: Self = Self::new(Own::Plain, Own::Not, Own::Plain, Own::Not);
    /// A change is not looked at but for what it makes.
    pub(crate) const WITHOUT_CHANGE: Self =
        Self::new(Own::WithFinalizers, Own::Not, Own::WithFinalizers, Own::Not);
    /// The whole is looked at twice instead of the change.
    pub(crate) const VOLUME: Self = Self {
        whole_times: 2,
        ..Self::new(
            Own::WithFinalizers,
            Own::Not,
            Own::WithFinalizers,
            Own::WithFinalizers,
        )
    };
    pub(crate) const CRON_JOB: Self =
        Self::new(Own::WithFinalizers, Own::WithFinalizers, Own::Not, Own::Not);
    /// What a change makes is not looked at.
    pub(crate) const WITHOUT_WHOLE: Self = Self::new(
        Own::WithFinalizers,
        Own::WithFinalizers,
        Own::Not,
        Own::WithFinalizers,
    );

    /// The same for a kind whose changed object is looked at before the change is.
    pub(crate) const fn whole_first(self) -> Self {
        Self {
            whole_times: 1,
            ..self
        }
    }
}

/// What the rules of a kind find wrong with the metadata of a change.
pub(crate) fn own_update_causes(new: &Value, old: &Value, own: Own) -> Vec<Cause> {
    if own == Own::Not {
        return Vec::new();
    }
    let mut causes = update_causes(new, old);
    if own == Own::WithFinalizers {
        causes.extend(finalizer_causes(new));
    }
    causes
}

/// What they find wrong with the metadata of the changed object by itself.
pub(crate) fn own_causes(object: &Value, own: Own) -> Vec<Cause> {
    if own == Own::Not {
        return Vec::new();
    }
    let mut causes = common_causes(object);
    if own == Own::WithFinalizers {
        causes.extend(finalizer_causes(object));
    }
    causes
}
