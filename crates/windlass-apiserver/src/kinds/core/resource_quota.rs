//! `ResourceQuota`.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::Strategy;
use crate::kinds::core::limits;
use crate::table::text::{or, text};
use crate::validation::at::{At, Causes};

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

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Request" => amounts(&object["status"], false).into(),
            "Limit" => amounts(&object["status"], true).into(),
            _ => return None,
        })
    }
}

/// How much is used of what is allowed: of limits, or of all else.
fn amounts(status: &Value, limits: bool) -> String {
    let hard = status["hard"].as_object().into_iter().flatten();
    hard.filter(|(name, _)| name.starts_with("limits") == limits)
        .map(|(name, most)| {
            let used = or(text(&status["used"][name.as_str()]), "0");
            format!("{name}: {used}/{}", text(most))
        })
        .collect::<Vec<_>>()
        .join(", ")
}
