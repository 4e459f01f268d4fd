//! `VolumeAttributesClass`.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::admission;
use crate::kinds::{Admission, Order, Strategy};
use crate::status::Result;
use crate::table::text::text;
use crate::validation::at::Causes;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct VolumeAttributesClass;

impl Strategy for VolumeAttributesClass {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_attributes(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_attributes_update(new, old, causes);
    }

    fn update_order(&self) -> Order {
        Order::First
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn admit(&self, _: &Admission<'_>, object: &mut Value) -> Result<()> {
        admission::add_finalizer(object, "kubernetes.io/vac-protection");
        Ok(())
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "DriverName" => text(&object["driverName"]).into(),
            _ => return None,
        })
    }
}
