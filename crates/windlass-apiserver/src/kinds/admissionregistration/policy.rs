//! Admission policies and their bindings. All expressions of a validating policy are compiled; of a
//! mutating one, which is stored and not run, the conditions and variables.

use std::collections::BTreeSet;

use serde_json::Value;

use super::webhook::{
    FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION, check_conditions, check_rule,
};
use crate::cel::Environment;
use crate::cel::admission::{self, TEXT, TEXT_OR_NULL};
use crate::names;
use crate::object::meta;
use crate::policy::{Variables, expression_environments};
use crate::status::{Cause, field};
use crate::validation::at::At;
use crate::validation::label;

const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];
const PATCHES: &[&str] = &["ApplyConfiguration", "JSONPatch"];
/// The longest expression of an annotation.
const MAX_ANNOTATION: usize = 5 * 1024;
const NEITHER: &str = "validations or auditAnnotations must contain at least one item";

pub(crate) fn check_validating(policy: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(policy, "").then("spec");
    let variables = check_common(&spec, causes);
    let (validations, annotations) = (spec.child("validations"), spec.child("auditAnnotations"));
    if validations.len() == 0 && annotations.len() == 0 {
        causes.push(validations.required(NEITHER));
        causes.push(annotations.required(NEITHER));
        return;
    }
    let has_params = spec.child("paramKind").is_set();
    let (mut asking, mut plain) = expression_environments(has_params);
    if spec.child("variables").len() > 0 {
        (asking, plain) = (variables.declare(asking), variables.declare(plain));
    }
    for validation in validations.elements() {
        check_validation(&validation, &asking, &plain, causes);
    }
    check_annotations(policy, &annotations, &asking, causes);
}

/// Annotations of the audit log: each needs a key of its own and an expression that is a text.
fn check_annotations(
    policy: &Value,
    annotations: &At<'_, '_>,
    environment: &Environment,
    causes: &mut Vec<Cause>,
) {
    let mut keys = BTreeSet::new();
    for annotation in annotations.elements() {
        // The key becomes one of the audit log, with the policy's name before it.
        let key = annotation.child("key");
        let whole = Value::from(format!("{}/{}", meta(policy, "name"), key.as_text()));
        key.with(&whole).each(names::qualified_errors, causes);
        let value = annotation.child("valueExpression");
        let source = value.as_text().trim();
        if source.is_empty() {
            causes.push(value.required("valueExpression is not specified"));
        } else if source.len() > MAX_ANNOTATION {
            let why = format!("must not exceed {MAX_ANNOTATION} bytes in length");
            causes.push(value.required(&why));
        } else if let Err(why) = admission::compile(source, environment, TEXT_OR_NULL) {
            causes.push(value.invalid(&why.to_string()));
        }
        if !keys.insert(key.as_text()) {
            causes.push(key.duplicate());
        }
    }
}

/// What both sorts of policies have.
fn check_common(spec: &At<'_, '_>, causes: &mut Vec<Cause>) -> Variables {
    spec.child("failurePolicy")
        .one_of_if_set(FAILURE_POLICIES, causes);
    let kind = spec.child("paramKind");
    if kind.is_set() {
        check_param_kind(&kind, causes);
    }
    let constraints = spec.child("matchConstraints");
    if constraints.is_set() {
        check_match(&constraints, causes);
        let rules = constraints.child("resourceRules");
        if rules.len() == 0 {
            causes.push(rules.required(""));
        }
    } else {
        causes.push(constraints.required(""));
    }
    let (environment, _) = expression_environments(kind.is_set());
    let conditions = spec.child("matchConditions");
    check_conditions(&conditions, causes, |expression| {
        admission::condition(expression, &environment).map(drop)
    });
    let mut variables = Variables::default();
    for variable in spec.child("variables").elements() {
        let (name, expression) = (variable.child("name"), variable.child("expression"));
        if name.as_text().trim().is_empty() {
            causes.push(name.required("name is not specified"));
        } else if !is_identifier(name.as_text()) {
            causes.push(name.invalid("must be a valid CEL identifier"));
        }
        if expression.as_text().trim().is_empty() {
            causes.push(expression.required("expression is not specified"));
            continue;
        }
        let defined = variables.define(name.as_text(), expression.as_text(), kind.is_set());
        if let Err(why) = defined {
            causes.push(expression.invalid(&why.to_string()));
        }
    }
    variables
}

/// The kind of parameters: a group and version, and a name of a kind.
fn check_param_kind(kind: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let (api_version, name) = (kind.child("apiVersion"), kind.child("kind"));
    let text = api_version.as_text();
    let parts: Vec<&str> = text.split('/').collect();
    let (group, version) = match parts.as_slice() {
        _ if matches!(text, "" | "/") => ("", ""),
        [version] => ("", *version),
        [group, version] => (*group, *version),
        _ => {
            let why = format!("unexpected GroupVersion string: {text}");
            causes.push(api_version.invalid(&why));
            ("", "v1")
        }
    };
    let wrong = |value: &str, errors: Vec<String>, causes: &mut Vec<Cause>| {
        if !errors.is_empty() {
            let value = Value::from(value);
            let at = api_version.with(&value);
            causes.push(at.invalid(&errors.join(",")));
        }
    };
    if text.is_empty() {
        causes.push(api_version.required(""));
    } else {
        if !group.is_empty() {
            wrong(group, names::subdomain_errors(group), causes);
        }
        if version.is_empty() {
            causes.push(api_version.invalid("version must be specified"));
        } else {
            wrong(version, names::label_1035_errors(version), causes);
        }
    }
    if name.as_text().is_empty() {
        causes.push(name.required(""));
    } else {
        let errors = names::label_1035_errors(&name.as_text().to_lowercase());
        if !errors.is_empty() {
            let why = format!(
                "may have mixed case, but should otherwise match: {}",
                errors.join(",")
            );
            causes.push(name.invalid(&why));
        }
    }
}

fn is_identifier(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn check_match(constraints: &At<'_, '_>, causes: &mut Vec<Cause>) {
    constraints
        .child("matchPolicy")
        .one_of_if_set(MATCH_POLICIES, causes);
    for part in ["namespaceSelector", "objectSelector"] {
        label::selector(&constraints.child(part), causes);
    }
    for part in ["resourceRules", "excludeResourceRules"] {
        for rule in constraints.child(part).elements() {
            check_rule(&rule, causes);
        }
    }
}

fn check_validation(
    validation: &At<'_, '_>,
    asking: &Environment,
    plain: &Environment,
    causes: &mut Vec<Cause>,
) {
    let expression = validation.child("expression");
    if expression.as_text().trim().is_empty() {
        causes.push(expression.required("expression is not specified"));
    } else if let Err(why) = admission::condition(expression.as_text(), asking) {
        causes.push(expression.invalid(&why.to_string()));
    }
    let told = validation.child("messageExpression");
    if !told.as_text().is_empty() {
        if told.as_text().trim().is_empty() {
            causes.push(told.invalid("must be non-empty if specified"));
        } else if let Err(why) = admission::compile(told.as_text(), plain, TEXT) {
            causes.push(told.invalid(&why.to_string()));
        }
    }
    let message = validation.child("message");
    if !message.as_text().is_empty() {
        if message.as_text().trim().is_empty() {
            causes.push(message.invalid("must be non-empty if specified"));
        } else if message.as_text().contains('\n') {
            causes.push(message.invalid("must not contain line breaks"));
        }
    }
    validation.child("reason").one_of_if_set(REASONS, causes);
}

pub(crate) fn check_mutating(policy: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(policy, "").then("spec");
    check_common(&spec, causes);
    let mutations = spec.child("mutations");
    if mutations.len() == 0 {
        causes.push(mutations.required("mutations must contain at least one item"));
    }
    for mutation in mutations.elements() {
        check_mutation(&mutation, causes);
    }
    spec.child("reinvocationPolicy")
        .one_of(REINVOCATION, causes);
}

fn check_mutation(mutation: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let kind = mutation.child("patchType");
    let (wanted, other) = match kind.as_text() {
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        _ => {
            kind.one_of(PATCHES, causes);
            return;
        }
    };
    let part = mutation.child(wanted);
    if part.is_set() {
        let expression = part.child("expression");
        if expression.as_text().trim().is_empty() {
            causes.push(expression.required("expression is not specified"));
        }
    } else {
        let why = format!("must be specified when patchType is {}", kind.as_text());
        causes.push(part.required(&why));
    }
    let part = mutation.child(other);
    if part.is_set() {
        let why = format!("must not be specified when patchType is {}", kind.as_text());
        let shown = format!("\"{{{other}}}\"");
        causes.push(field::invalid_shown(part.path(), &shown, &why));
    }
}

pub(crate) fn check_validating_binding(binding: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(binding, "").then("spec");
    check_binding(&spec, causes);
    let actions = spec.child("validationActions");
    if actions.len() == 0 {
        causes.push(actions.required("at least one validation action is required"));
        return;
    }
    let mut seen = BTreeSet::new();
    for action in actions.elements() {
        action.one_of_if_set(ACTIONS, causes);
        if !seen.insert(action.as_text()) {
            causes.push(action.duplicate());
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        causes.push(actions.invalid(
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
        ));
    }
}

pub(crate) fn check_mutating_binding(binding: &Value, causes: &mut Vec<Cause>) {
    check_binding(&At::root(binding, "").then("spec"), causes);
}

fn check_binding(spec: &At<'_, '_>, causes: &mut Vec<Cause>) {
    spec.child("policyName")
        .name(names::subdomain_errors, causes);
    let reference = spec.child("paramRef");
    if reference.is_set() {
        let (name, selector) = (reference.child("name"), reference.child("selector"));
        let both = "name and selector are mutually exclusive";
        match (!name.as_text().is_empty(), selector.is_set()) {
            (true, true) => {
                causes.push(name.forbidden(both));
                causes.push(selector.forbidden(both));
            }
            (false, false) => {
                causes.push(reference.required("one of name or selector must be specified"));
            }
            (true, false) => name.each(names::segment_errors, causes),
            (false, true) => label::selector(&selector, causes),
        }
        let missing = reference.child("parameterNotFoundAction");
        missing.one_of(&["Deny", "Allow"], causes);
    }
    let resources = spec.child("matchResources");
    if resources.is_set() {
        check_match(&resources, causes);
    }
}
