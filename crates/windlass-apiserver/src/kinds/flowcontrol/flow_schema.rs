//! `FlowSchema`.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::kinds::Strategy;
use crate::table::cell::{items, none, number};
use crate::table::text::text;
use crate::validation::at::Causes;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct FlowSchema;

impl Strategy for FlowSchema {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_schema(object, causes);
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        Some(match column {
            "PriorityLevel" => text(&spec["priorityLevelConfiguration"]["name"]).into(),
            "MatchingPrecedence" => number(&spec["matchingPrecedence"]),
            "DistinguisherMethod" => none(&spec["distinguisherMethod"]["type"]),
            "MissingPL" => dangling(object),
            _ => return None,
        })
    }
}

/// Whether its priority level is missing.
fn dangling(schema: &Value) -> Value {
    let conditions = items(&schema["status"], "conditions");
    let found = conditions.iter().find(|one| one["type"] == "Dangling");
    found.map_or("?".into(), |one| one["status"].clone())
}
