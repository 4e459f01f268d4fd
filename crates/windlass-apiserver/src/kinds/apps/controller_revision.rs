//! `ControllerRevision`.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::kinds::Strategy;
use crate::table::cell::number;
use crate::table::text::text;
use crate::validation::at::{Causes, immutable_field};

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ControllerRevision;

impl Strategy for ControllerRevision {
    fn check(&self, object: &Value, old: Option<&Value>, causes: &mut Causes) {
        validation::revision(object, old.is_none(), causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        immutable_field(new, old, "data", causes);
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Controller" => controller(object).into(),
            "Revision" => number(&object["revision"]),
            _ => return None,
        })
    }
}

fn controller(object: &Value) -> String {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let owner = owners
        .into_iter()
        .flatten()
        .find(|one| one["controller"] == true);
    let Some(owner) = owner else {
        return "<none>".to_owned();
    };
    let version = text(&owner["apiVersion"]);
    let kind = text(&owner["kind"]).to_lowercase();
    let name = text(&owner["name"]);
    match version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}
