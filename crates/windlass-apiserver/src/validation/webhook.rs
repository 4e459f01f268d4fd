//! Webhook configurations, and the rules by which webhooks and policies choose requests.

use std::collections::BTreeSet;

use serde_json::Value;

use super::place::{At, PORT_RANGE};
use super::selector;
use crate::cel;
use crate::names;
use crate::status::{Cause, field};

const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];
const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];
const FORMAT: &str = "desired format: https://host[/path]";
pub(super) const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
pub(super) const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];
pub(super) const REINVOCATION: &[&str] = &["IfNeeded", "Never"];

pub(super) fn check_mutating(configuration: &Value, causes: &mut Vec<Cause>) {
    check(configuration, true, causes);
}

pub(super) fn check_validating(configuration: &Value, causes: &mut Vec<Cause>) {
    check(configuration, false, causes);
}

fn check(configuration: &Value, mutating: bool, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for hook in At::root(configuration).get("webhooks").items() {
        check_hook(&hook, mutating, causes);
        check_versions(&hook.get("admissionReviewVersions"), causes);
        let name = hook.get("name");
        if !name.text().is_empty() && !seen.insert(name.text()) {
            causes.push(name.duplicate());
        }
    }
}

fn check_hook(hook: &At<'_>, mutating: bool, causes: &mut Vec<Cause>) {
    check_name(&hook.get("name"), causes);
    for rule in hook.get("rules").items() {
        check_rule(&rule, causes);
    }
    hook.get("failurePolicy")
        .maybe_one_of(FAILURE_POLICIES, causes);
    hook.get("matchPolicy").maybe_one_of(MATCH_POLICIES, causes);
    let effects = hook.get("sideEffects");
    let allowed = ["None", "NoneOnDryRun"];
    if effects.is_set() {
        effects.maybe_one_of(&allowed, causes);
    } else {
        causes.push(effects.required("must specify one of None, NoneOnDryRun"));
    }
    let timeout = hook.get("timeoutSeconds");
    if timeout.is_set() && !(1..=30).contains(&timeout.int()) {
        causes.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
    }
    for part in ["namespaceSelector", "objectSelector"] {
        selector::check(&hook.get(part), causes);
    }
    if mutating {
        hook.get("reinvocationPolicy")
            .maybe_one_of(REINVOCATION, causes);
    }
    check_client(&hook.get("clientConfig"), causes);
    let conditions = hook.get("matchConditions");
    check_conditions(&conditions, causes, |expression| {
        let environment = cel::admission::with_authorizer(cel::admission::environment());
        cel::admission::condition(expression, &environment).map(drop)
    });
}

/// A domain of three parts or more.
fn check_name(name: &At<'_>, causes: &mut Vec<Cause>) {
    if name.text().is_empty() {
        causes.push(name.required(""));
        return;
    }
    let before = causes.len();
    name.each(names::subdomain_errors, causes);
    if causes.len() == before && name.text().split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        causes.push(name.invalid(why));
    }
}

fn check_versions(versions: &At<'_>, causes: &mut Vec<Cause>) {
    if versions.len() == 0 {
        causes.push(versions.required("must specify one of v1, v1beta1"));
        return;
    }
    let mut seen = BTreeSet::new();
    for version in versions.items() {
        if !seen.insert(version.text()) {
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
pub(super) fn check_rule(rule: &At<'_>, causes: &mut Vec<Cause>) {
    let operations = rule.get("operations");
    if operations.len() == 0 {
        causes.push(operations.required(""));
    }
    check_alone(&operations, "operations", causes);
    for operation in operations.items() {
        operation.maybe_one_of(OPERATIONS, causes);
    }
    for (part, what, may_be_empty) in [
        ("apiGroups", "API groups", true),
        ("apiVersions", "API versions", false),
    ] {
        let part = rule.get(part);
        if part.len() == 0 {
            causes.push(part.required(""));
        }
        check_alone(&part, what, causes);
        for item in part.items() {
            if item.text().is_empty() && !may_be_empty {
                causes.push(item.required(""));
            }
        }
    }
    check_resources(&rule.get("resources"), causes);
    rule.get("scope").maybe_one_of(SCOPES, causes);
}

/// "Everything" stands by itself.
fn check_alone(list: &At<'_>, what: &str, causes: &mut Vec<Cause>) {
    if list.len() > 1 && list.items().any(|item| item.text() == "*") {
        let why = format!("if '*' is present, must not specify other {what}");
        causes.push(list.invalid(&why));
    }
}

fn check_resources(resources: &At<'_>, causes: &mut Vec<Cause>) {
    if resources.len() == 0 {
        causes.push(resources.required(""));
        return;
    }
    let (mut of_resource, mut of_subresource) = (BTreeSet::new(), BTreeSet::new());
    for item in resources.items() {
        let text = item.text();
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
    let plain = resources.items().filter(|item| !item.text().contains('/'));
    if plain.count() > 1 && resources.items().any(|item| item.text() == "*") {
        let why = "if '*' is present, must not specify other resources without subresources";
        causes.push(resources.invalid(why));
    }
}

fn check_client(client: &At<'_>, causes: &mut Vec<Cause>) {
    let (url, service) = (client.get("url"), client.get("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => check_url(&url, causes),
        (false, true) => check_service(&service, causes),
        _ => causes.push(client.required("exactly one of url or service is required")),
    }
}

/// `https://host[/path]`, and nothing else a URL can have.
fn check_url(url: &At<'_>, causes: &mut Vec<Cause>) {
    let wrong = |part: &str, why: &str| field::invalid(url.path.as_str(), &part.into(), why);
    let (rest, fragment) = url.text().split_once('#').unwrap_or((url.text(), ""));
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

fn check_service(service: &At<'_>, causes: &mut Vec<Cause>) {
    for part in ["name", "namespace"] {
        let part = service.get(part);
        if part.text().is_empty() {
            causes.push(part.required(""));
        }
    }
    let port = service.get("port");
    if !(1..=65535).contains(&port.int()) {
        causes.push(port.invalid_int(&format!("port is not valid: {PORT_RANGE}")));
    }
    let path = service.get("path");
    if !path.is_set() || path.text() == "/" || path.text().is_empty() {
        return;
    }
    if path.text() == "//" {
        causes.push(path.invalid("segment[0] may not be empty"));
        return;
    }
    if !path.text().starts_with('/') {
        causes.push(path.invalid("must start with a '/'"));
    }
    let trimmed = path.text().strip_suffix('/').unwrap_or(path.text());
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
pub(super) fn check_conditions(
    conditions: &At<'_>,
    causes: &mut Vec<Cause>,
    compile: impl Fn(&str) -> Result<(), String>,
) {
    if conditions.len() > 64 {
        let path = conditions.path.as_str();
        causes.push(field::too_many(path, conditions.len(), 64));
    }
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        let source = expression.text().trim();
        if source.is_empty() {
            causes.push(expression.required(""));
        } else if let Err(why) = compile(source) {
            causes.push(field::invalid(
                expression.path.as_str(),
                &source.into(),
                &why,
            ));
        }
        name.name(names::qualified_errors, causes);
        if !name.text().is_empty() && !seen.insert(name.text()) {
            causes.push(name.duplicate());
        }
    }
}
