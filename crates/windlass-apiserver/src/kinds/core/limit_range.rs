//! `LimitRange`.

use serde_json::Value;

use crate::kinds::core::limits;
use crate::kinds::{Strategy, Writing};
use crate::object::{meta, set_meta};
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct LimitRange;

impl Strategy for LimitRange {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        limits::limit_range(object, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn is_created_by_update(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_CHANGE
    }

    fn prepare_create(&self, object: &mut Value, writing: &Writing<'_>) -> Vec<String> {
        if meta(object, "name").is_empty() {
            set_meta(object, "name", Some(writing.random.uid().into()));
        }
        Vec::new()
    }
}
