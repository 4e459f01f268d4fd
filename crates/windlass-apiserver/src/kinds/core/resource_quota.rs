//! `ResourceQuota`.

use serde_json::Value;

use crate::kinds::Strategy;
use crate::validation::at::{At, Causes};
use crate::validation::limits;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ResourceQuota;

impl Strategy for ResourceQuota {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        limits::quota(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        limits::quota_update(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn check_status(&self, new: &Value, _: &Value, causes: &mut Causes) {
        let status = At::root(&new["status"], "status");
        limits::amounts(&status, "hard", causes);
        limits::amounts(&status, "used", causes);
    }
}
