//! Selectors of nodes: by their labels, and by their names.

use super::at::{At, Causes};
use super::label;
use crate::names;

/// What is wrong with a selector that must match.
pub(crate) fn check(at: &At<'_, '_>, causes: &mut Causes) {
    if at.list("nodeSelectorTerms").is_empty() {
        let why = "must have at least one node selector term";
        causes.push(at.child("nodeSelectorTerms").required(why));
    }
    for term in at.items("nodeSelectorTerms") {
        check_term(&term, true, causes);
    }
}

/// A choice of nodes; what is only preferred may name values that no node has.
pub(crate) fn check_term(at: &At<'_, '_>, strict: bool, causes: &mut Causes) {
    for expression in at.items("matchExpressions") {
        let values = expression.child("values");
        let count = expression.list("values").len();
        match expression.text("operator") {
            "In" | "NotIn" => {
                if count == 0 {
                    let why = "must be specified when `operator` is 'In' or 'NotIn'";
                    causes.push(values.required(why));
                }
            }
            "Exists" | "DoesNotExist" => {
                if count > 0 {
                    let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    causes.push(values.forbidden(why));
                }
            }
            "Gt" | "Lt" => {
                if count != 1 {
                    let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                    causes.push(values.required(why));
                }
            }
            other => causes.push(
                expression
                    .child("operator")
                    .invalid_value(other, "not a valid selector operator"),
            ),
        }
        label::qualified(&expression.child("key"), causes);
        if strict {
            label::values_of(&expression, causes);
        }
    }
    for field in at.items("matchFields") {
        match field.text("operator") {
            "In" | "NotIn" => {
                if field.list("values").len() != 1 {
                    let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                    causes.push(field.child("values").required(why));
                }
            }
            other => causes.push(
                field
                    .child("operator")
                    .invalid_value(other, "not a valid selector operator"),
            ),
        }
        if field.text("key") == "metadata.name" {
            for value in field.items("values") {
                let name = value.value.as_str().unwrap_or_default();
                value.complain(names::subdomain_errors(name), causes);
            }
        } else {
            let key = field.text("key");
            causes.push(
                field
                    .child("key")
                    .invalid_value(key, "not a valid field selector key"),
            );
        }
    }
}
