//! Validation of built-in kinds, as far as operators meet it.
//!
//! What is not checked here is checked by the type alone. A cause names its field and says what is
//! wrong in Kubernetes' words; all causes come in one answer, in Kubernetes' order. One module per
//! Go type that is checked, used by every kind that has such a part.

pub(crate) mod address;
pub(crate) mod amount;
pub(crate) mod at;
pub(crate) mod difference;
pub(crate) mod endpoints;
pub(crate) mod internal;
pub(crate) mod label;
pub(crate) mod metadata;
pub(crate) mod node_selector;
pub(crate) mod resources;
pub(crate) mod template;
pub(crate) mod warnings;

use serde_json::Value;

use crate::kinds::{Order, Strategy};
use crate::status::Cause;

pub(crate) use label::selects;

/// What is wrong with a change: with the new object by itself (its metadata, and what `kind_causes`
/// finds), and with what it changes.
pub(crate) fn check_change(
    new: &Value,
    old: &Value,
    strategy: &dyn Strategy,
    mut metadata: Vec<Cause>,
    kind_causes: impl FnOnce() -> Vec<Cause>,
) -> Vec<Cause> {
    match strategy.update_order() {
        Order::Only => {
            strategy.check_update(new, old, &mut metadata);
            metadata
        }
        Order::First => [check_changed(new, old, strategy), metadata, kind_causes()].concat(),
        Order::After => {
            metadata.extend(kind_causes());
            strategy.check_update(new, old, &mut metadata);
            metadata
        }
    }
}

/// What is wrong with what changed, whatever the new object is by itself.
pub(crate) fn check_changed(new: &Value, old: &Value, strategy: &dyn Strategy) -> Vec<Cause> {
    let mut causes = Vec::new();
    strategy.check_update(new, old, &mut causes);
    causes
}

/// What is wrong with a change through a subresource.
pub(crate) fn check_subresource(
    new: &Value,
    old: &Value,
    strategy: &dyn Strategy,
    subresource: &str,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    match subresource {
        "status" => strategy.check_status(new, old, &mut causes),
        _ => strategy.check_subresource(new, old, subresource, &mut causes),
    }
    causes
}

/// What is wrong with a built-in object that is new, or that was `old`.
pub(crate) fn check(object: &Value, old: Option<&Value>, strategy: &dyn Strategy) -> Vec<Cause> {
    let mut causes = Vec::new();
    strategy.check(object, old, &mut causes);
    causes
}
