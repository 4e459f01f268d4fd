//! `PriorityClass`.

use serde_json::Value;

use crate::admission;
use crate::kinds::{Admission, Strategy};
use crate::metadata::Checks;
use crate::resource::Resource;
use crate::status::Result;
use crate::validation::at::Causes;
use crate::validation::cluster;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct PriorityClass;

impl Strategy for PriorityClass {
    fn check(&self, object: &Value, old: Option<&Value>, causes: &mut Causes) {
        if old.is_none() {
            cluster::priority_class(object, causes);
        }
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        cluster::priority_class_update(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_WHOLE
    }

    fn generation_changes(&self, _: &Value, _: &Value, _: &Resource) -> bool {
        // What of a class may change asks for nothing new.
        false
    }

    fn admit_created(&self, admission: &Admission<'_>, object: &Value) -> Result<()> {
        admission::check_default_priority(admission, object, true)
    }

    fn admit_changed(&self, admission: &Admission<'_>, new: &Value, _: &Value) -> Result<()> {
        admission::check_default_priority(admission, new, false)
    }

    fn admit_delete(&self, resource: &Resource, name: &str) -> Result<()> {
        admission::check_priority_delete(resource, name)
    }
}
