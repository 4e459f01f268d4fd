//! `matchConditions`: CEL expressions that must all be true for a webhook or a policy to be asked.
//!
//! One that is false decides, whatever is wrong with the others. Without such a one an error
//! refuses the request, or leaves the webhook out if its failures are to be ignored. All conditions
//! of a webhook share one budget.

use std::sync::Arc;

use serde_json::Value;

use super::attributes::Attributes;
use super::review;
use crate::auth::{Action, Identity, ResourceAction};
use crate::cel::{
    self, CelValue, Compiled, Decision, Definitions, Environment, MATCH_CONDITIONS_BUDGET,
    Question, ResourceQuestion, Run, RunError, Spent, Who,
};
use crate::registry::resource::Resource;

/// The variables of an expression, and what they are.
pub(crate) type Seen = Vec<(&'static str, CelValue)>;

/// Why it is not known whether conditions hold.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Undecided {
    /// They cost more than they may.
    #[error("{}", Spent::message())]
    Spent,
    /// None is false, and these have no value.
    #[error("{}", all(.0))]
    Errors(Vec<RunError>),
}

/// All errors, as Kubernetes shows them together.
fn all(errors: &[RunError]) -> String {
    match errors {
        [one] => one.to_string(),
        many => {
            let many: Vec<String> = many.iter().map(ToString::to_string).collect();
            format!("[{}]", many.join(", "))
        }
    }
}

/// The conditions of one webhook or policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions(Vec<Compiled>);

impl Conditions {
    /// Compiles what `matchConditions` says.
    pub(crate) fn read(list: &Value, environment: &Environment) -> Self {
        let list = list.as_array().into_iter().flatten();
        let compiled = list.map(|condition| {
            let source = condition["expression"].as_str().unwrap_or_default();
            Compiled {
                source: source.to_owned(),
                expression: cel::admission::condition(source, environment),
            }
        });
        Self(compiled.collect())
    }

    /// Those of a webhook.
    pub(super) fn of_webhook(webhook: &Value) -> Self {
        let list = &webhook["matchConditions"];
        if list.as_array().is_none_or(Vec::is_empty) {
            return Self::default();
        }
        let environment = cel::admission::environment();
        Self::read(list, &cel::admission::with_authorizer(environment))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every condition holds; the error says why that cannot be told.
    pub(crate) fn hold(&self, seen: &Seen, definitions: &Definitions) -> Result<bool, Undecided> {
        let mut run = Run::new(seen, definitions, MATCH_CONDITIONS_BUDGET);
        let (mut holds, mut errors) = (true, Vec::new());
        for condition in &self.0 {
            match run.evaluate(condition) {
                Ok(Ok(CelValue::Bool(true))) => {}
                Ok(Ok(_)) => holds = false,
                Ok(Err(why)) => errors.push(why),
                Err(Spent) => return Err(Undecided::Spent),
            }
        }
        match errors.as_slice() {
            _ if !holds => Ok(false),
            [] => Ok(true),
            _ => Err(Undecided::Errors(errors)),
        }
    }
}

/// What expressions see of a request and its objects, in the version of `resource`.
pub(crate) fn seen(
    attributes: &Attributes<'_>,
    resource: &Resource,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Seen {
    let value = |object: Option<&Value>| cel::of_json(object.unwrap_or(&Value::Null), None);
    let request = review::about(attributes, resource);
    let mut seen = vec![
        ("object", value(object)),
        ("oldObject", value(old)),
        ("namespaceObject", CelValue::Null),
        ("request", cel::of_json(&request, None)),
    ];
    seen.extend(authorizer(attributes));
    seen
}

/// Whom an expression may ask about, first of all who made the request.
fn authorizer(attributes: &Attributes<'_>) -> [(&'static str, CelValue); 2] {
    let server = attributes.server.downgrade();
    let requester = attributes.who.clone();
    let authorizer = move |who: &Who, question: &Question<'_>| {
        let Some(server) = server.upgrade() else {
            return Decision {
                allowed: false,
                reason: String::new(),
            };
        };
        let action = match question {
            Question::Path { verb, path } => Action::Path { verb, path },
            Question::Resource { verb, of } => Action::Resource(ResourceAction {
                verb,
                group: &of.group,
                resource: &of.resource,
                subresource: &of.subresource,
                namespace: &of.namespace,
                name: &of.name,
            }),
        };
        let judgement = match who {
            Who::Requester => server.rbac().judge(&requester, &action),
            // It has shown no token, so it is not among the authenticated.
            Who::ServiceAccount { namespace, name } => {
                let account = Identity::unauthenticated_account(namespace, name);
                server.rbac().judge(&account, &action)
            }
        };
        Decision {
            allowed: judgement.is_allowed(),
            reason: judgement.reason(),
        }
    };
    let own = attributes.resource;
    let question = ResourceQuestion {
        group: own.group.clone(),
        resource: own.plural.clone(),
        subresource: attributes.subresource.to_owned(),
        namespace: attributes.namespace.to_owned(),
        name: attributes.name.to_owned(),
    };
    cel::admission::authorizer_variables(Arc::new(authorizer), question)
}
