//! Admission policies and their bindings. Of their expressions the conditions and the validations
//! are compiled, but for those that need what this server's CEL does not have: they are not run.

use std::collections::BTreeSet;

use serde_json::Value;

use super::place::At;
use super::selector;
use super::webhook::{
    FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION, check_conditions, check_rule,
};
use crate::cel::{self, Environment, Type};
use crate::names;
use crate::object::meta;
use crate::status::{Cause, field};

const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
const PATCHES: &[&str] = &["ApplyConfiguration", "JSONPatch"];
const NEITHER: &str = "validations or auditAnnotations must contain at least one item";

pub(super) fn check_validating(policy: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(policy).get("spec");
    check_common(&spec, causes);
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.len() == 0 && annotations.len() == 0 {
        causes.push(validations.required(NEITHER));
        causes.push(annotations.required(NEITHER));
        return;
    }
    let mut environment = environment(&spec);
    if spec.get("variables").len() > 0 {
        environment = environment.variable("variables", Type::Dyn, None);
    }
    for validation in validations.items() {
        check_validation(&validation, &environment, causes);
    }
    for annotation in annotations.items() {
        // The key becomes one of the audit log, with the policy's name before it.
        let key = annotation.get("key");
        let whole = Value::from(format!("{}/{}", meta(policy, "name"), key.text()));
        At::new(key.path, &whole).each(names::qualified_errors, causes);
        let value = annotation.get("valueExpression");
        if value.text().trim().is_empty() {
            causes.push(value.required("valueExpression is not specified"));
        }
    }
}

/// What expressions of a policy see.
fn environment(spec: &At<'_>) -> Environment {
    let environment = cel::admission::environment();
    if spec.get("paramKind").is_set() {
        return environment.variable("params", Type::Dyn, None);
    }
    environment
}

/// What is wrong with an expression that must be a truth, as far as that can be told: who may do
/// what cannot be asked, and some macros are not known.
fn compile(source: &str, environment: &Environment) -> Result<(), String> {
    match cel::admission::condition(source, environment) {
        Err(why) if !source.contains("authorizer") && !why.contains(cel::NOT_RUN) => Err(why),
        _ => Ok(()),
    }
}

/// What both sorts of policies have.
fn check_common(spec: &At<'_>, causes: &mut Vec<Cause>) {
    spec.get("failurePolicy")
        .maybe_one_of(FAILURE_POLICIES, causes);
    let kind = spec.get("paramKind");
    if kind.is_set() {
        for part in ["apiVersion", "kind"] {
            let part = kind.get(part);
            if part.text().is_empty() {
                causes.push(part.required(""));
            }
        }
    }
    let constraints = spec.get("matchConstraints");
    if constraints.is_set() {
        check_match(&constraints, causes);
        let rules = constraints.get("resourceRules");
        if rules.len() == 0 {
            causes.push(rules.required(""));
        }
    } else {
        causes.push(constraints.required(""));
    }
    let (conditions, environment) = (spec.get("matchConditions"), environment(spec));
    check_conditions(&conditions, causes, |expression| {
        compile(expression, &environment)
    });
    for variable in spec.get("variables").items() {
        let (name, expression) = (variable.get("name"), variable.get("expression"));
        if name.text().trim().is_empty() {
            causes.push(name.required("name is not specified"));
        } else if !is_identifier(name.text()) {
            causes.push(name.invalid("must be a valid CEL identifier"));
        }
        if expression.text().trim().is_empty() {
            causes.push(expression.required("expression is not specified"));
        }
    }
}

fn is_identifier(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn check_match(constraints: &At<'_>, causes: &mut Vec<Cause>) {
    constraints
        .get("matchPolicy")
        .maybe_one_of(MATCH_POLICIES, causes);
    for part in ["namespaceSelector", "objectSelector"] {
        selector::check(&constraints.get(part), causes);
    }
    for part in ["resourceRules", "excludeResourceRules"] {
        for rule in constraints.get(part).items() {
            check_rule(&rule, causes);
        }
    }
}

fn check_validation(validation: &At<'_>, environment: &Environment, causes: &mut Vec<Cause>) {
    let expression = validation.get("expression");
    if expression.text().trim().is_empty() {
        causes.push(expression.required("expression is not specified"));
    } else if let Err(why) = compile(expression.text(), environment) {
        causes.push(expression.invalid(&why));
    }
    let message = validation.get("message");
    if !message.text().is_empty() {
        if message.text().trim().is_empty() {
            causes.push(message.invalid("must be non-empty if specified"));
        } else if message.text().contains('\n') {
            causes.push(message.invalid("must not contain line breaks"));
        }
    }
    validation.get("reason").maybe_one_of(REASONS, causes);
}

pub(super) fn check_mutating(policy: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(policy).get("spec");
    check_common(&spec, causes);
    let mutations = spec.get("mutations");
    if mutations.len() == 0 {
        causes.push(mutations.required("mutations must contain at least one item"));
    }
    for mutation in mutations.items() {
        check_mutation(&mutation, causes);
    }
    spec.get("reinvocationPolicy").one_of(REINVOCATION, causes);
}

fn check_mutation(mutation: &At<'_>, causes: &mut Vec<Cause>) {
    let kind = mutation.get("patchType");
    let (wanted, other) = match kind.text() {
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        _ => {
            kind.one_of(PATCHES, causes);
            return;
        }
    };
    let part = mutation.get(wanted);
    if part.is_set() {
        let expression = part.get("expression");
        if expression.text().trim().is_empty() {
            causes.push(expression.required("expression is not specified"));
        }
    } else {
        let why = format!("must be specified when patchType is {}", kind.text());
        causes.push(part.required(&why));
    }
    let part = mutation.get(other);
    if part.is_set() {
        let why = format!("must not be specified when patchType is {}", kind.text());
        let shown = format!("\"{{{other}}}\"");
        causes.push(field::invalid_shown(part.path, &shown, &why));
    }
}

pub(super) fn check_validating_binding(binding: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(binding).get("spec");
    check_binding(&spec, causes);
    let actions = spec.get("validationActions");
    if actions.len() == 0 {
        causes.push(actions.required("at least one validation action is required"));
        return;
    }
    let mut seen = BTreeSet::new();
    for action in actions.items() {
        action.maybe_one_of(ACTIONS, causes);
        if !seen.insert(action.text()) {
            causes.push(action.duplicate());
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        causes.push(actions.invalid(
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
        ));
    }
}

pub(super) fn check_mutating_binding(binding: &Value, causes: &mut Vec<Cause>) {
    check_binding(&At::root(binding).get("spec"), causes);
}

fn check_binding(spec: &At<'_>, causes: &mut Vec<Cause>) {
    spec.get("policyName").name(names::subdomain_errors, causes);
    let reference = spec.get("paramRef");
    if reference.is_set() {
        let (name, selector) = (reference.get("name"), reference.get("selector"));
        let both = "name and selector are mutually exclusive";
        match (!name.text().is_empty(), selector.is_set()) {
            (true, true) => {
                causes.push(name.forbidden(both));
                causes.push(selector.forbidden(both));
            }
            (false, false) => {
                causes.push(reference.required("one of name or selector must be specified"));
            }
            (true, false) => name.each(names::segment_errors, causes),
            (false, true) => selector::check(&selector, causes),
        }
        let missing = reference.get("parameterNotFoundAction");
        missing.one_of(&["Deny", "Allow"], causes);
    }
    let resources = spec.get("matchResources");
    if resources.is_set() {
        check_match(&resources, causes);
    }
}
