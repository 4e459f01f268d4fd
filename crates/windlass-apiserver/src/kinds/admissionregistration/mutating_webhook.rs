//! `MutatingWebhookConfiguration`.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::Strategy;
use crate::kinds::admissionregistration::webhook;
use crate::table::cell::count;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct MutatingWebhookConfiguration;

impl Strategy for MutatingWebhookConfiguration {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        webhook::check_mutating(object, causes);
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ADMISSION
    }

    fn has_generation(&self, _: bool) -> bool {
        true
    }

    fn needs_version(&self) -> bool {
        true
    }

    fn passes_no_webhooks(&self) -> bool {
        true
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Webhooks" => count(&object["webhooks"]),
            _ => return None,
        })
    }
}
