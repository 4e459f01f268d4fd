//! `ConfigMap`.

use serde_json::Value;

use crate::kinds::{Order, Strategy};
use crate::validation::at::Causes;
use crate::validation::data;

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
}
