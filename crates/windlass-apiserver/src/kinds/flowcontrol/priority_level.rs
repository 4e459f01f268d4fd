//! `PriorityLevelConfiguration`.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::kinds::Strategy;
use crate::table::text::text;
use crate::validation::at::Causes;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct PriorityLevelConfiguration;

impl Strategy for PriorityLevelConfiguration {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_level(object, causes);
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        let queuing = &spec["limited"]["limitResponse"]["queuing"];
        Some(match column {
            "Type" => text(&spec["type"]).into(),
            "NominalConcurrencyShares" => or_none(&spec["limited"]["nominalConcurrencyShares"]),
            "Queues" => or_none(&queuing["queues"]),
            "HandSize" => or_none(&queuing["handSize"]),
            "QueueLengthLimit" => or_none(&queuing["queueLengthLimit"]),
            _ => return None,
        })
    }
}

/// A number, if there is one.
fn or_none(value: &Value) -> Value {
    if value.is_null() {
        "<none>".into()
    } else {
        value.clone()
    }
}
