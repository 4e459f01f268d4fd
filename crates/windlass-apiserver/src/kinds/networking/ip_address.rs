//! `IPAddress`.

use jiff::Timestamp;
use serde_json::Value;

use super::addresses;
use crate::kinds::Strategy;
use crate::object::meta;
use crate::table;
use crate::table::text::text;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct IPAddress;

impl Strategy for IPAddress {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        addresses::check_address(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        addresses::check_address_update(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ALL.whole_first()
    }

    fn name_errors(&self, name: &str) -> Vec<String> {
        addresses::name_errors(name)
    }

    fn extra_cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        // A cell that no column announces.
        vec![table::age(meta(object, "creationTimestamp"), now).into()]
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "ParentRef" => parent(&object["spec"]["parentRef"]).into(),
            _ => return None,
        })
    }
}

fn parent(parent: &Value) -> String {
    if parent.is_null() {
        return "<none>".to_owned();
    }
    let resource = match text(&parent["group"]).as_str() {
        "" => text(&parent["resource"]),
        group => format!("{}.{group}", text(&parent["resource"])),
    };
    match text(&parent["namespace"]).as_str() {
        "" => format!("{resource}/{}", text(&parent["name"])),
        namespace => format!("{resource}/{namespace}/{}", text(&parent["name"])),
    }
}
