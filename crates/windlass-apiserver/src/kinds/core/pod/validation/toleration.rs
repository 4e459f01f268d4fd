//! Tolerations of taints.

use crate::names;
use crate::validation::at::{At, Causes};
use crate::validation::label;

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The tolerations in the list `name`.
pub(crate) fn check(at: &At<'_, '_>, name: &str, causes: &mut Causes) {
    for toleration in at.items(name) {
        let (key, value) = (toleration.text("key"), toleration.text("value"));
        let (operator, effect) = (toleration.text("operator"), toleration.text("effect"));
        let told = toleration.child("operator");
        if !key.is_empty() {
            label::qualified(&toleration.child("key"), causes);
        } else if operator != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes.push(told.invalid_value(operator, why));
        }
        if toleration.has("tolerationSeconds") && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            causes.push(toleration.child("effect").invalid_value(effect, why));
        }
        match operator {
            "Equal" | "" => {
                let wrong = names::label_value_errors(value);
                if !wrong.is_empty() {
                    causes.push(told.invalid_value(value, &wrong.join(";")));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    let why = "value must be empty when `operator` is 'Exists'";
                    causes.push(told.invalid_value(value, why));
                }
            }
            "Lt" | "Gt" => causes.push(told.not_supported(&["Equal", "Exists", "Lt", "Gt"])),
            _ => causes.push(told.not_supported(&["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            check_effect(&toleration.child("effect"), causes);
        }
    }
}

/// What a taint does to those who do not tolerate it.
pub(crate) fn check_effect(at: &At<'_, '_>, causes: &mut Causes) {
    at.one_of(EFFECTS, causes);
}
