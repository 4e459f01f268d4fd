//! `NetworkPolicy`.

use serde_json::Value;

use crate::kinds::Strategy;
use crate::metadata::Checks;
use crate::validation::at::Causes;
use crate::validation::network_policy;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct NetworkPolicy;

impl Strategy for NetworkPolicy {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        network_policy::check(object, causes);
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_WHOLE
    }
}
