//! `IngressClass`.

use serde_json::Value;

use crate::kinds::{Order, Strategy};
use crate::validation::at::Causes;
use crate::validation::ingress;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct IngressClass;

impl Strategy for IngressClass {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        ingress::check_class(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        ingress::check_class_update(new, old, causes);
    }

    fn update_order(&self) -> Order {
        Order::First
    }
}
