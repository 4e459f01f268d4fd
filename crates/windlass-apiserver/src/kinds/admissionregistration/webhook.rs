//! Webhook configurations, and the rules by which webhooks and policies choose requests.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cel;
use crate::names;
use crate::status::{Cause, field};
use crate::validation::at::{At, PORT_RANGE};
use crate::validation::label;

const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];
const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];
const FORMAT: &str = "desired format: https://host[/path]";
pub(crate) const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
pub(crate) const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];
pub(crate) const REINVOCATION: &[&str] = &["IfNeeded", "Never"];

pub(crate) fn check_mutating(configuration: &Value, causes: &mut Vec<Cause>) {
    check(configuration, true, causes);
}

pub(crate) fn check_validating(configuration: &Value, causes: &mut Vec<Cause>) {
    check(configuration, false, causes);
}

fn check(configuration: &Value, mutating: bool, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for hook in At::root(configuration, "").then("webhooks").elements() {
        check_hook(&hook, mutating, causes);
        check_versions(&hook.child("admissionReviewVersions"), causes);
        let name = hook.child("name");
        if !name.as_text().is_empty() && !seen.insert(name.as_text()) {
            causes.push(name.duplicate());
        }
    }
}

fn check_hook(hook: &At<'_, '_>, mutating: bool, causes: &mut Vec<Cause>) {
    check_name(&hook.child("name"), causes);
    for rule in hook.child("rules").elements() {
        check_rule(&rule, causes);
    }
    hook.child("failurePolicy")
        .one_of_if_set(FAILURE_POLICIES, causes);
    hook.child("matchPolicy")
        .one_of_if_set(MATCH_POLICIES, causes);
    let effects = hook.child("sideEffects");
    let allowed = ["None", "NoneOnDryRun"];
    if effects.is_set() {
        effects.one_of_if_set(&allowed, causes);
    } else {
        causes.push(effects.required("must specify one of None, NoneOnDryRun"));
    }
    let timeout = hook.child("timeoutSeconds");
    if timeout.is_set() && !(1..=30).contains(&timeout.as_int()) {
        causes.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    for part in ["namespaceSelector", "objectSelector"] {
        label::selector(&hook.child(part), causes);
    }
    if mutating {
        hook.child("reinvocationPolicy")
            .one_of_if_set(REINVOCATION, causes);
    }
    check_client(&hook.child("clientConfig"), causes);
    let conditions = hook.child("matchConditions");
    check_conditions(&conditions, causes, |expression| {
        let environment = cel::admission::with_authorizer(cel::admission::environment());
        cel::admission::condition(expression, &environment).map(drop)
    });
}

/// A domain of three parts or more.
fn check_name(name: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if name.as_text().is_empty() {
        causes.push(name.required(""));
        return;
    }
    let before = causes.len();
    name.each(names::subdomain_errors, causes);
    if causes.len() == before && name.as_text().split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        causes.push(name.invalid(why));
    }
}

fn check_versions(versions: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if versions.len() == 0 {
        causes.push(versions.required("must specify one of v1, v1beta1"));
        return;
    }
    let mut seen = BTreeSet::new();
    for version in versions.elements() {
        if !seen.insert(version.as_text()) {
            causes.push(version.invalid("duplicate version"));
            continue;
        }
        version.each(names::old_label_errors, causes);
    }
    if !seen.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        causes.push(versions.invalid("must include at least one of v1, v1beta1"));
    }
}

/// The rule by which a webhook or a policy chooses requests.
pub(crate) fn check_rule(rule: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let operations = rule.child("operations");
    if operations.len() == 0 {
        causes.push(operations.required(""));
    }
    check_alone(&operations, "operations", causes);
    for operation in operations.elements() {
        operation.one_of_if_set(OPERATIONS, causes);
    }
    for (part, what, may_be_empty) in [
        ("apiGroups", "API groups", true),
        ("apiVersions", "API versions", false),
    ] {
        let part = rule.child(part);
        if part.len() == 0 {
            causes.push(part.required(""));
        }
        check_alone(&part, what, causes);
        for item in part.elements() {
            if item.as_text().is_empty() && !may_be_empty {
                causes.push(item.required(""));
            }
        }
    }
    check_resources(&rule.child("resources"), causes);
    rule.child("scope").one_of_if_set(SCOPES, causes);
}

/// "Everything" stands by itself.
fn check_alone(list: &At<'_, '_>, what: &str, causes: &mut Vec<Cause>) {
    if list.len() > 1 && list.elements().any(|item| item.as_text() == "*") {
        let why = format!("if '*' is present, must not specify other {what}");
        causes.push(list.invalid(&why));
    }
}

fn check_resources(resources: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if resources.len() == 0 {
        causes.push(resources.required(""));
        return;
    }
    let (mut of_resource, mut of_subresource) = (BTreeSet::new(), BTreeSet::new());
    for item in resources.elements() {
        let text = item.as_text();
        if text.is_empty() {
            causes.push(item.required(""));
            continue;
        }
        if text == "*/*" && resources.len() > 1 {
            let why = "if '*/*' is present, must not specify other resources";
            causes.push(resources.invalid(why));
        }
        let Some((resource, subresource)) = text.split_once('/') else {
            continue;
        };
        let mut refuse = |covering: &str| {
            let why = format!("if '{covering}' is present, must not specify {text}");
            causes.push(item.invalid(&why));
        };
        if of_resource.contains(resource) {
            refuse(&format!("{resource}/*"));
        }
        if of_subresource.contains(subresource) {
            refuse(&format!("*/{subresource}"));
        }
        if subresource == "*" {
            of_resource.insert(resource);
        }
        if resource == "*" {
            of_subresource.insert(subresource);
        }
    }
    let plain = resources
        .elements()
        .filter(|item| !item.as_text().contains('/'));
    if plain.count() > 1 && resources.elements().any(|item| item.as_text() == "*") {
        let why = "if '*' is present, must not specify other resources without subresources";
        causes.push(resources.invalid(why));
    }
}

fn check_client(client: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let (url, service) = (client.child("url"), client.child("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => check_url(&url, causes),
        (false, true) => check_service(&service, causes),
        _ => causes.push(client.required("exactly one of url or service is required")),
    }
}

/// `https://host[/path]`, and nothing else a URL can have.
fn check_url(url: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let wrong = |part: &str, why: &str| field::invalid(url.path(), &part.into(), why);
    let (rest, fragment) = url.as_text().split_once('#').unwrap_or((url.as_text(), ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
    let authority = rest
        .strip_prefix("//")
        .map_or("", |rest| rest.split('/').next().unwrap_or_default());
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", authority),
    };
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme; {FORMAT}");
        causes.push(wrong(scheme, &why));
    }
    if host.is_empty() {
        let why = format!("host must be specified; {FORMAT}");
        causes.push(wrong(host, &why));
    }
    for (part, why) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            causes.push(wrong(part, why));
        }
    }
}

fn check_service(service: &At<'_, '_>, causes: &mut Vec<Cause>) {
    for part in ["name", "namespace"] {
        let part = service.child(part);
        if part.as_text().is_empty() {
            causes.push(part.required(""));
        }
    }
    let port = service.child("port");
    if !(1..=65535).contains(&port.as_int()) {
        causes.push(port.invalid_int(&format!("port is not valid: {PORT_RANGE}")));
    }
    let path = service.child("path");
    if !path.is_set() || path.as_text() == "/" || path.as_text().is_empty() {
        return;
    }
    if path.as_text() == "//" {
        causes.push(path.invalid("segment[0] may not be empty"));
        return;
    }
    if !path.as_text().starts_with('/') {
        causes.push(path.invalid("must start with a '/'"));
    }
    let trimmed = path.as_text().strip_suffix('/').unwrap_or(path.as_text());
    // What stands before the first slash is no segment.
    let (_, segments) = trimmed.split_once('/').unwrap_or(("", ""));
    for (index, segment) in segments.split('/').enumerate() {
        if segment.is_empty() {
            causes.push(path.invalid(&format!("segment[{index}] may not be empty")));
            continue;
        }
        for why in names::subdomain_errors(segment) {
            causes.push(path.invalid(&format!("segment[{index}]: {why}")));
        }
    }
}

/// The conditions of a webhook or a policy; `compile` says what is wrong with an expression.
pub(crate) fn check_conditions(
    conditions: &At<'_, '_>,
    causes: &mut Vec<Cause>,
    compile: impl Fn(&str) -> Result<(), cel::AdmissionError>,
) {
    if conditions.len() > 64 {
        let path = conditions.path();
        causes.push(field::too_many(path, conditions.len(), 64));
    }
    let mut seen = BTreeSet::new();
    for condition in conditions.elements() {
        let (name, expression) = (condition.child("name"), condition.child("expression"));
        let source = expression.as_text().trim();
        if source.is_empty() {
            causes.push(expression.required(""));
        } else if let Err(why) = compile(source) {
            let why = why.to_string();
            causes.push(field::invalid(expression.path(), &source.into(), &why));
        }
        name.name(names::qualified_errors, causes);
        if !name.as_text().is_empty() && !seen.insert(name.as_text()) {
            causes.push(name.duplicate());
        }
    }
}
