//! `IngressClass`.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::networking::ingress::validation;
use crate::kinds::{Order, Strategy};
use crate::table::text::text;
use crate::validation::at::Causes;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct IngressClass;

impl Strategy for IngressClass {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_class(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_class_update(new, old, causes);
    }

    fn update_order(&self) -> Order {
        Order::First
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        Some(match column {
            "Controller" => text(&spec["controller"]).into(),
            "Parameters" => parameters(&spec["parameters"]).into(),
            _ => return None,
        })
    }
}

fn parameters(parameters: &Value) -> String {
    if parameters.is_null() {
        return "<none>".to_owned();
    }
    let (kind, name) = (text(&parameters["kind"]), text(&parameters["name"]));
    match text(&parameters["apiGroup"]).as_str() {
        "" => format!("{kind}/{name}"),
        group => format!("{kind}.{group}/{name}"),
    }
}
