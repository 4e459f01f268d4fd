//! `Lease`.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::{Strategy, Way};
use crate::table::text::text;
use crate::validation::at::{At, Causes};
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Lease;

impl Strategy for Lease {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        check(object, causes);
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

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Holder" => text(&object["spec"]["holderIdentity"]).into(),
            _ => return None,
        })
    }
}

fn check(lease: &Value, causes: &mut Causes) {
    let spec = At::root(&lease["spec"], "spec");
    let lasts = spec.child("leaseDurationSeconds");
    if lasts.value.as_i64().is_some_and(|seconds| seconds <= 0) {
        causes.push(lasts.invalid("must be greater than 0"));
    }
    let changed = spec.child("leaseTransitions");
    if changed.value.as_i64().is_some_and(|times| times < 0) {
        causes.push(changed.invalid("must be greater than or equal to 0"));
    }
}
