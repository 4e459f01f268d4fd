//! `matchConditions`: CEL expressions that must all be true for a webhook to be called.
//!
//! One that is false decides, whatever is wrong with the others. Without such a one an error
//! refuses the request, or leaves out the webhook if its failures are to be ignored. All
//! conditions of a webhook share one budget.

use serde_json::Value;

use super::attributes::Attributes;
use super::configuration::Hook;
use super::review;
use crate::cel::{self, CelValue, Failure, MATCH_CONDITIONS_BUDGET, PER_CALL_LIMIT};
use crate::resource::Resource;

const SPENT: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Whether every condition holds; the error says why that cannot be told, and refuses the request.
pub(super) fn hold(
    hook: &Hook,
    attributes: &Attributes<'_>,
    resource: &Resource,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<bool, String> {
    match judge(hook, attributes, resource, object, old) {
        Err(why) if hook.ignore_failure => {
            tracing::warn!(
                webhook = hook.name,
                why,
                "match conditions fail: not called"
            );
            Ok(false)
        }
        judged => judged,
    }
}

fn judge(
    hook: &Hook,
    attributes: &Attributes<'_>,
    resource: &Resource,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<bool, String> {
    let value = |object: Option<&Value>| cel::of_json(object.unwrap_or(&Value::Null), None);
    let request = review::about(attributes, resource);
    let variables = [
        ("object", value(object)),
        ("oldObject", value(old)),
        ("namespaceObject", CelValue::Null),
        ("request", cel::of_json(&request, None)),
    ];
    let environment = cel::admission::environment();
    let mut budget = MATCH_CONDITIONS_BUDGET;
    let (mut holds, mut errors) = (true, Vec::new());
    for (_, source) in &hook.conditions {
        let expression = match cel::admission::condition(source, &environment) {
            Ok(expression) => expression,
            Err(why) => {
                errors.push(format!("compilation error: {why}"));
                continue;
            }
        };
        let limit = PER_CALL_LIMIT.min(budget);
        let (result, cost) = expression.evaluate(&variables, limit);
        let failed = |why: &str| format!("expression '{source}' resulted in error: {why}");
        match result {
            Ok(CelValue::Bool(true)) => {}
            Ok(_) => holds = false,
            Err(Failure::TooCostly) if budget < PER_CALL_LIMIT => return Err(SPENT.to_owned()),
            Err(Failure::TooCostly) => {
                errors.push(failed("operation cancelled: actual cost limit exceeded"));
            }
            Err(Failure::Said(why)) => errors.push(failed(&why)),
        }
        budget = budget.saturating_sub(cost);
    }
    match errors.as_slice() {
        _ if !holds => Ok(false),
        [] => Ok(true),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}
