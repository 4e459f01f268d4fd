//! Which changes are worth a message.

use kube::core::{Selector, SelectorExt};
use serde_json::Value;
use windlass_cel::{CelValue, Environment, Expression, PER_CALL_LIMIT, Type, of_json};

use crate::advanced;
use crate::config::WatchSpec;
use crate::handler::ConfigError;
use crate::notice::Notice;

/// What a configuration lets pass.
pub(crate) struct Filter {
    namespaces: Vec<String>,
    reasons: Vec<String>,
    selector: Option<Selector>,
    expression: Option<Expression>,
    advanced: bool,
}

impl Filter {
    pub(crate) fn of(config: &WatchSpec) -> Result<Self, ConfigError> {
        let selector = config.selector.clone().map(Selector::try_from).transpose();
        let selector = selector.map_err(|error| ConfigError::Selector(error.to_string()))?;
        let variables = ["object", "oldObject"].into_iter();
        let environment = variables.fold(Environment::default(), |environment, name| {
            environment.variable(name, Type::Dyn, None)
        });
        let texts = ["kind", "namespace", "name", "reason"].into_iter();
        let environment = texts.fold(environment, |environment, name| {
            environment.variable(name, Type::String, None)
        });
        let expression = match config.filter.as_str() {
            "" => None,
            source => Some(
                Expression::compile(source, &environment)
                    .map_err(|error| ConfigError::Filter(error.to_string()))?,
            ),
        };
        Ok(Self {
            namespaces: namespaces(config),
            reasons: config.reason.clone(),
            selector,
            expression,
            advanced: config.advancedfilters,
        })
    }

    /// Whether it looks at what an object was before a change.
    pub(crate) fn sees_old(&self) -> bool {
        let uses = |expression: &Expression| expression.uses("oldObject");
        self.advanced || self.selector.is_some() || self.expression.as_ref().is_some_and(uses)
    }

    pub(crate) fn passes(&self, notice: &Notice) -> bool {
        let (object, old) = (notice.object.as_deref(), notice.old.as_deref());
        let namespaced = !notice.namespace.is_empty() && !self.namespaces.is_empty();
        if namespaced && !self.namespaces.contains(&notice.namespace) {
            return false;
        }
        if let Some(selector) = &self.selector
            && ![object, old]
                .into_iter()
                .flatten()
                .any(|one| has_labels(one, selector))
        {
            return false;
        }
        self.wants_reason(notice)
            && (!self.advanced || advanced::passes(notice))
            && self
                .expression
                .as_ref()
                .is_none_or(|one| is_true(one, notice))
    }

    fn wants_reason(&self, notice: &Notice) -> bool {
        let reason = notice.reason.to_string();
        let own = match (notice.kind.as_str(), &notice.object) {
            ("Event", Some(event)) => event["reason"].as_str().unwrap_or_default(),
            _ => "",
        };
        let mut reasons = self.reasons.iter();
        self.reasons.is_empty() || reasons.any(|wanted| *wanted == reason || wanted == own)
    }
}

/// The namespaces that are watched; all of them if empty.
pub(crate) fn namespaces(config: &WatchSpec) -> Vec<String> {
    let one = Some(&config.namespace).filter(|one| !one.is_empty());
    let mut all: Vec<String> = config.namespaces.iter().chain(one).cloned().collect();
    all.sort();
    all.dedup();
    all
}

fn has_labels(object: &Value, selector: &Selector) -> bool {
    let labels = object["metadata"]["labels"].as_object();
    let labels = labels.into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    selector.matches(
        &labels
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
    )
}

/// An expression that cannot be evaluated, because an object lacks what it looks at, holds nothing
/// back: it is better to send too much than too little.
fn is_true(expression: &Expression, notice: &Notice) -> bool {
    let text = |text: &str| CelValue::String(text.to_owned().into());
    let object = |object: Option<&Value>| of_json(object.unwrap_or(&Value::Null), None);
    let variables = [
        ("object", object(notice.object.as_deref())),
        ("oldObject", object(notice.old.as_deref())),
        ("kind", text(&notice.kind)),
        ("namespace", text(&notice.namespace)),
        ("name", text(&notice.name)),
        ("reason", text(&notice.reason.to_string())),
    ];
    let (result, _) = expression.evaluate(&variables, PER_CALL_LIMIT);
    !matches!(result, Ok(CelValue::Bool(false)))
}
