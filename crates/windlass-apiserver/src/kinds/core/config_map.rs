//! `ConfigMap`.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::core::data;
use crate::kinds::{Order, Strategy};
use crate::table::cell::entries;
use crate::validation::at::Causes;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ConfigMap;

impl Strategy for ConfigMap {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        data::check_config_map(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        data::check_frozen(new, old, causes);
    }

    fn update_order(&self) -> Order {
        Order::First
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Data" => entries(object),
            _ => return None,
        })
    }
}
