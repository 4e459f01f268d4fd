//! `ControllerRevision`.

use serde_json::Value;

use crate::kinds::Strategy;
use crate::validation::at::Causes;
use crate::validation::{apps, cluster};

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ControllerRevision;

impl Strategy for ControllerRevision {
    fn check(&self, object: &Value, old: Option<&Value>, causes: &mut Causes) {
        apps::revision(object, old.is_none(), causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        cluster::immutable(new, old, "data", causes);
    }
}
