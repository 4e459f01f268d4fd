//! `ValidatingAdmissionPolicy`: rules about writes, written in CEL.
//!
//! A policy says which requests it is about and what must be true of them; a binding puts it in
//! force, for all of those requests or some, with parameters, and says what follows when something
//! is not true. Policies are asked after the object is complete and valid, before the validating
//! webhooks.
//!
//! Rules:
//! - A policy without a binding, and a binding without a policy, do nothing.
//! - The parameters of a binding are objects of the policy's `paramKind`, by name or by selector.
//!   The policy is evaluated once with each; with none if `parameterNotFoundAction` allows it.
//! - An expression that fails, a parameter that cannot be found and a parameter kind that is not
//!   known are refusals, unless the `failurePolicy` is `Ignore`.
//! - What is refused is denied (the first refusal is told), or the client is warned. There is no
//!   audit log here, so `Audit` and the values of audit annotations lead nowhere; an annotation
//!   that fails is a refusal all the same.
//! - Of several policies and bindings the first by name is heard first; with Kubernetes the order
//!   is that of Go's maps.
//! - A policy is compiled when it is first asked, and again when it changes.

mod binding;
mod definition;
mod evaluation;
mod params;

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use binding::{Action, Binding};
use definition::Policy;
pub(crate) use definition::{Variables, expression_environments};
use evaluation::Refusal;

use crate::object::meta;
use crate::registry::derived::Derived;
use crate::status::{ApiError, Result};
use crate::store::{Key, TableName};
use crate::webhook::{self, Attributes};

const GROUP: &str = "admissionregistration.k8s.io";
static POLICIES: LazyLock<TableName> =
    LazyLock::new(|| TableName::new(GROUP, "validatingadmissionpolicies"));
static BINDINGS: LazyLock<TableName> =
    LazyLock::new(|| TableName::new(GROUP, "validatingadmissionpolicybindings"));

/// The policies and bindings of a server, compiled.
#[derive(Default)]
pub(crate) struct Policies {
    policies: Derived<Policy>,
    bindings: Derived<Binding>,
}

/// What is denied, by whom.
struct Denial {
    message: String,
    reason: Option<String>,
}

/// Asks every policy in force whether the object may be stored as it is.
pub(crate) async fn validate(attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
    let (store, known) = (attributes.server.store(), attributes.server.policies());
    let bindings = known.bindings.all(store, &BINDINGS, Binding::read);
    if bindings.is_empty() || webhook::is_policy(attributes.resource) {
        return Ok(());
    }
    let policies = known.policies.all(store, &POLICIES, Policy::read);
    let mut denials = Vec::new();
    for policy in &policies {
        if bindings.iter().any(|binding| binding.policy == policy.name) {
            ask(policy, &bindings, attributes, object, &mut denials).await?;
        }
    }
    match denials.into_iter().next() {
        None => Ok(()),
        Some(first) => Err(denied(attributes, object, &first)),
    }
}

async fn ask(
    policy: &Policy,
    bindings: &[Arc<Binding>],
    attributes: &Attributes<'_>,
    object: Option<&Value>,
    denials: &mut Vec<Denial>,
) -> Result<()> {
    let mut misconfigured = |binding: Option<&Binding>, why: &str| {
        if !policy.ignore_failure {
            let what = if binding.is_some() {
                "binding"
            } else {
                "policy"
            };
            let why = format!("failed to configure {what}: {why}");
            denials.push(Denial {
                message: told(policy, binding, &why),
                reason: None,
            });
        }
    };
    let resource = match policy.criteria.matched(attributes, object) {
        Ok(None) => return Ok(()),
        Ok(Some(resource)) => resource,
        Err(error) => {
            misconfigured(None, &error.message);
            return Ok(());
        }
    };
    let kind = match params::kind(attributes.server, policy.param_kind.as_ref()) {
        Ok(kind) => kind,
        Err(why) => {
            misconfigured(None, &why.to_string());
            return Ok(());
        }
    };
    let mut refusals = Vec::new();
    for binding in bindings {
        if binding.policy != policy.name {
            continue;
        }
        match binding.criteria.matched(attributes, object) {
            Ok(Some(_)) => {}
            Ok(None) => continue,
            Err(error) => {
                misconfigured(Some(binding.as_ref()), &error.message);
                continue;
            }
        }
        let params = match params::find(attributes, kind.as_deref(), binding.params.as_ref()).await
        {
            Ok(params) => params,
            Err(why) => {
                misconfigured(Some(binding.as_ref()), &why.to_string());
                continue;
            }
        };
        for param in params {
            let found =
                evaluation::evaluate(policy, attributes, &resource, object, param.as_ref()).await?;
            refusals.extend(found.into_iter().map(|refusal| (binding.as_ref(), refusal)));
        }
    }
    for (binding, refusal) in refusals {
        follow(policy, binding, attributes, refusal, denials);
    }
    Ok(())
}

/// What follows from a refusal.
fn follow(
    policy: &Policy,
    binding: &Binding,
    attributes: &Attributes<'_>,
    refusal: Refusal,
    denials: &mut Vec<Denial>,
) {
    let message = told(policy, Some(binding), &refusal.message);
    let reason = refusal.reason;
    // An annotation that cannot be made is not a question of what the binding wants.
    if refusal.annotation {
        denials.push(Denial { message, reason });
        return;
    }
    for action in &binding.actions {
        match action {
            Action::Deny => denials.push(Denial {
                message: message.clone(),
                reason: reason.clone(),
            }),
            Action::Warn => attributes.warnings.add([format!(
                "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                policy.name, binding.name, refusal.message
            )]),
            Action::Audit => {}
        }
    }
}

fn told(policy: &Policy, binding: Option<&Binding>, why: &str) -> String {
    let name = &policy.name;
    match binding {
        Some(binding) => format!(
            "ValidatingAdmissionPolicy '{name}' with binding '{}' denied request: {why}",
            binding.name
        ),
        None => format!("ValidatingAdmissionPolicy '{name}' denied request: {why}"),
    }
}

fn denied(attributes: &Attributes<'_>, object: Option<&Value>, denial: &Denial) -> ApiError {
    let name = match attributes.name {
        "" => object.map_or("", |object| meta(object, "name")),
        name => name,
    };
    // A collection has none.
    let name = if name.is_empty() { "Unknown" } else { name };
    let subject = attributes.resource.subject();
    let mut error = ApiError::forbidden(subject, name, &denial.message);
    (error.code, error.reason) = match denial.reason.as_deref() {
        Some("Forbidden") => (http::StatusCode::FORBIDDEN, "Forbidden"),
        Some("RequestEntityTooLarge") => {
            (http::StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge")
        }
        _ => (http::StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
    };
    error.set_causes(vec![json!({"message": denial.message})]);
    error
}

/// The namespace that a request is in, as expressions see it.
fn namespace_of(attributes: &Attributes<'_>) -> Option<Value> {
    if attributes.namespace.is_empty() || attributes.resource.strategy.is_namespace() {
        return None;
    }
    let key = Key::new("", attributes.namespace);
    let store = attributes.server.store();
    let found = store.get(&TableName::new("", "namespaces"), &key)?.value();
    let mut shown = json!({"metadata": {}, "spec": found["spec"], "status": found["status"]});
    for field in [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
    ] {
        if let Some(value) = found["metadata"].get(field) {
            shown["metadata"][field] = value.clone();
        }
    }
    Some(shown)
}
