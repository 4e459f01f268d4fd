//! One policy, evaluated with one parameter.

use serde_json::Value;

use super::definition::{Policy, Validation};
use super::namespace_of;
use crate::cel::{self, BUDGET, CelValue, Run, Spent};
use crate::registry::resource::Resource;
use crate::status::Result;
use crate::webhook::{self, Attributes, Seen};

/// The longest message an expression may make.
const MAX_MESSAGE: usize = 5 * 1024;

/// Something that is not true, or could not be found out.
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) reason: Option<String>,
    /// It was an audit annotation that failed.
    pub(super) annotation: bool,
}

impl Refusal {
    fn error(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            reason: None,
            annotation: false,
        }
    }
}

/// What the policy refuses about a request. Errors are refusals too, unless they are to be ignored.
pub(super) async fn evaluate(
    policy: &Policy,
    attributes: &Attributes<'_>,
    resource: &Resource,
    object: Option<&Value>,
    param: Option<&Value>,
) -> Result<Vec<Refusal>> {
    let versioned = match webhook::versioned(attributes, resource, object).await {
        Ok(versioned) => versioned,
        Err(_) if policy.ignore_failure => return Ok(Vec::new()),
        Err(error) => {
            let why = format!("failed to convert object version: {}", error.message);
            return Ok(vec![Refusal::error(why)]);
        }
    };
    let (object, old) = (versioned.object, versioned.old);
    let mut seen = webhook::seen(attributes, resource, object.as_deref(), old.as_deref());
    seen.push(("params", cel::of_json(param.unwrap_or(&Value::Null), None)));
    let refusals = match policy.conditions.hold(&seen, &policy.variables) {
        Ok(false) => return Ok(Vec::new()),
        Ok(true) => {
            if let Some(namespace) = namespace_of(attributes) {
                place(&mut seen, &namespace);
            }
            judge(policy, &seen)
        }
        Err(why) => vec![(true, Refusal::error(why.to_string()))],
    };
    let counts = |is_error: bool| !(is_error && policy.ignore_failure);
    let refusals = refusals.into_iter();
    Ok(refusals
        .filter(|(is_error, _)| counts(*is_error))
        .map(|(_, refusal)| refusal)
        .collect())
}

/// Conditions do not see the namespace, validations do.
fn place(seen: &mut Seen, namespace: &Value) {
    let value = cel::of_json(namespace, Some(&cel::admission::namespace()));
    if let Some(known) = seen.iter_mut().find(|(name, _)| *name == "namespaceObject") {
        known.1 = value;
    }
}

/// What is not true, and whether it is an error.
fn judge(policy: &Policy, seen: &Seen) -> Vec<(bool, Refusal)> {
    let spent = || vec![(true, Refusal::error(Spent::message()))];
    let mut run = Run::new(seen, &policy.variables, BUDGET);
    let mut results = Vec::with_capacity(policy.validations.len());
    for validation in &policy.validations {
        match run.evaluate(&validation.expression) {
            Ok(result) => results.push(result),
            Err(Spent) => return spent(),
        }
    }
    let mut messages = Messages::make(policy, seen, run.left());
    let mut refusals = Vec::new();
    for (at, (validation, result)) in policy.validations.iter().zip(results).enumerate() {
        match (result, messages.is_spent) {
            (Err(why), _) => refusals.push((true, Refusal::error(why.to_string()))),
            (Ok(_), true) => {
                let why = format!("failed messageExpression: {}", Spent::message());
                refusals.push((true, Refusal::error(why)));
            }
            (Ok(CelValue::Bool(true)), false) => {}
            (Ok(_), false) => {
                let message = messages.take(at).unwrap_or_else(|| fallback(validation));
                let reason = validation.reason.clone();
                let refusal = Refusal {
                    message,
                    reason,
                    annotation: false,
                };
                refusals.push((false, refusal));
            }
        }
    }
    let mut run = Run::new(seen, &policy.variables, BUDGET);
    for annotation in &policy.annotations {
        match run.evaluate(annotation) {
            Ok(Ok(_)) => {}
            Ok(Err(why)) => {
                let mut refusal = Refusal::error(why.to_string());
                refusal.annotation = true;
                refusals.push((true, refusal));
            }
            Err(Spent) => return spent(),
        }
    }
    refusals
}

/// What is said of a validation that has no message expression, or one that came to nothing.
fn fallback(validation: &Validation) -> String {
    if validation.message.is_empty() {
        let source = validation.expression.source.trim();
        return format!("failed expression: {source}");
    }
    validation.message.clone()
}

/// What the message expressions of a policy come to.
struct Messages {
    made: Vec<Option<String>>,
    is_spent: bool,
}

impl Messages {
    fn make(policy: &Policy, seen: &Seen, budget: u64) -> Self {
        let mut run = Run::new(seen, &policy.variables, budget);
        let (mut made, mut is_spent) = (Vec::new(), false);
        for validation in &policy.validations {
            let Some(expression) = &validation.message_expression else {
                made.push(None);
                continue;
            };
            match run.evaluate(expression) {
                Ok(Ok(CelValue::String(text))) => made.push(usable(&text)),
                Ok(_) => made.push(None),
                Err(Spent) => {
                    is_spent = true;
                    break;
                }
            }
        }
        Self { made, is_spent }
    }

    fn take(&mut self, at: usize) -> Option<String> {
        self.made.get_mut(at)?.take()
    }
}

/// A message of one line, of which there is something.
fn usable(text: &str) -> Option<String> {
    let text = text.trim();
    let fits = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
    fits.then(|| text.to_owned())
}
