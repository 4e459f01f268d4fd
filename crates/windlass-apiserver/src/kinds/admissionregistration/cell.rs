//! What the columns of policies and their bindings show, validating and mutating alike.

use serde_json::Value;

use crate::table::text::{joined, or, text};

/// The kind of a policy's parameters.
pub(super) fn param_kind(policy: &Value) -> Value {
    match &policy["spec"]["paramKind"] {
        Value::Null => "<unset>".into(),
        kind => format!("{}/{}", text(&kind["apiVersion"]), text(&kind["kind"])).into(),
    }
}

pub(super) fn of_binding(binding: &Value, column: &str) -> Option<Value> {
    let spec = &binding["spec"];
    Some(match column {
        "PolicyName" => text(&spec["policyName"]).into(),
        "ParamRef" => parameters(&spec["paramRef"]).into(),
        _ => return None,
    })
}

/// What parameters a policy is bound with; a selector is shown as Go prints it.
fn parameters(reference: &Value) -> String {
    let name = text(&reference["name"]);
    if !name.is_empty() {
        return format!("{}/{name}", or(text(&reference["namespace"]), "*"));
    }
    if reference["selector"].is_null() {
        return "<unset>".to_owned();
    }
    let labels = reference["selector"]["matchLabels"].as_object();
    let labels: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}: {},", text(value)))
        .collect();
    let expressions = reference["selector"]["matchExpressions"].as_array();
    let expressions: Vec<String> = expressions
        .into_iter()
        .flatten()
        .map(|one| {
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                text(&one["key"]),
                text(&one["operator"]),
                joined(&one["values"], " ")
            )
        })
        .collect();
    let (labels, expressions) = (labels.concat(), expressions.concat());
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
