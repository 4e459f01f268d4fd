//! `Lease`.

use serde_json::Value;

use crate::kinds::{Strategy, Way};
use crate::metadata::Checks;
use crate::validation::at::Causes;
use crate::validation::cluster;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Lease;

impl Strategy for Lease {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        cluster::lease(object, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn needs_version(&self) -> bool {
        true
    }

    fn is_created_by_update(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::LEASE
    }

    fn disabled_fields(&self) -> &'static [Way] {
        &[&["spec", "strategy"], &["spec", "preferredHolder"]]
    }
}
