//! Label selectors and node selectors.

use super::at::At;
use crate::names;
use crate::status::Cause;

/// What is wrong with labels, as in a selector of equals.
pub(super) fn check_labels(labels: &At<'_, '_>, causes: &mut Vec<Cause>) {
    for key in labels.keys() {
        let wrong = |value: &str, why: &str| {
            crate::status::field::invalid(labels.path(), &value.into(), why)
        };
        for why in names::qualified_errors(key) {
            causes.push(wrong(key, &why));
        }
        let value = labels.value[key].as_str().unwrap_or_default();
        for why in names::label_value_errors(value) {
            causes.push(wrong(value, &why));
        }
    }
}

/// What is wrong with a label selector.
pub(super) fn check(selector: &At<'_, '_>, causes: &mut Vec<Cause>) {
    check_labels(&selector.child("matchLabels"), causes);
    for expression in selector.child("matchExpressions").elements() {
        check_expression(&expression, &["In", "NotIn"], &[], causes);
    }
}

/// What is wrong with a requirement; `ordered` operators take exactly one value.
fn check_expression(
    expression: &At<'_, '_>,
    sets: &[&str],
    ordered: &[&str],
    causes: &mut Vec<Cause>,
) {
    let (operator, values) = (expression.child("operator"), expression.child("values"));
    match operator.as_text() {
        set if sets.contains(&set) => {
            if values.len() == 0 {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                causes.push(values.required(why));
            }
        }
        "Exists" | "DoesNotExist" => {
            if values.len() > 0 {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(values.forbidden(why));
            }
        }
        other if ordered.contains(&other) => {
            if values.len() != 1 {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                causes.push(values.required(why));
            }
        }
        _ => causes.push(operator.invalid_text("not a valid selector operator")),
    }
    expression
        .child("key")
        .each(names::qualified_errors, causes);
    let set = sets.contains(&operator.as_text());
    for value in values.elements().filter(|_| set && ordered.is_empty()) {
        value.each(names::label_value_errors, causes);
    }
}

/// What is wrong with a node selector.
pub(super) fn check_nodes(selector: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let terms = selector.child("nodeSelectorTerms");
    if terms.len() == 0 {
        causes.push(terms.required("must have at least one node selector term"));
    }
    for term in terms.elements() {
        for expression in term.child("matchExpressions").elements() {
            check_expression(&expression, &["In", "NotIn"], &["Lt", "Gt"], causes);
        }
    }
}
