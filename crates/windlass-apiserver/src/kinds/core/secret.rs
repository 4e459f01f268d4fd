//! `Secret`.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::core::data;
use crate::kinds::{Order, Strategy};
use crate::table::cell::entries;
use crate::table::text::text;
use crate::validation::at::Causes;
use crate::validation::warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Secret;

impl Strategy for Secret {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        data::check_secret(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        data::check_secret_update(new, old, causes);
    }

    fn update_order(&self) -> Order {
        Order::First
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        warnings::secret(object)
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Type" => text(&object["type"]).into(),
            "Data" => entries(object),
            _ => return None,
        })
    }
}
