//! `ResourceClaim`.

use jiff::Timestamp;
use serde_json::Value;

use super::admin_access;

use super::validation;
use crate::kinds::{Admission, Order, Strategy};
use crate::object::is_terminating;
use crate::status::Cause;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ResourceClaim;

impl Strategy for ResourceClaim {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_claim(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_spec_update(new, old, causes);
    }

    fn update_order(&self) -> Order {
        Order::Only
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ALL.whole_first()
    }

    fn check_there(&self, admission: &Admission<'_>, object: &Value) -> Option<Cause> {
        admin_access::check(admission, &object["spec"])
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "State" => state(object).into(),
            _ => return None,
        })
    }
}

fn state(claim: &Value) -> String {
    let mut states = Vec::new();
    if is_terminating(claim) {
        states.push("deleted");
    }
    let found = &claim["status"];
    if found["allocation"].is_null() {
        if states.is_empty() {
            states.push("pending");
        }
    } else {
        states.push("allocated");
        if found["reservedFor"]
            .as_array()
            .is_some_and(|users| !users.is_empty())
        {
            states.push("reserved");
        }
    }
    states.join(",")
}
