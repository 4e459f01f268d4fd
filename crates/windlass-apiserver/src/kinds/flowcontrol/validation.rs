//! `FlowSchemas` and `PriorityLevelConfigurations`.

use serde_json::{Value, json};

use crate::names;
use crate::object::meta;
use crate::status::{Cause, field};
use crate::validation::at::At;

const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];
/// What the catch-all has, and nobody else may.
const LAST: i64 = 10_000;

pub(crate) fn check_schema(schema: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(schema, "").then("spec");
    let precedence = spec.child("matchingPrecedence");
    if precedence.as_int() <= 0 {
        causes.push(precedence.invalid_int("must be a positive value"));
    }
    if precedence.as_int() > LAST {
        causes.push(precedence.invalid("must not be greater than 10000"));
    }
    let method = spec.child("distinguisherMethod");
    let kind = method.child("type");
    if method.is_set() && !["ByNamespace", "ByUser"].contains(&kind.as_text()) {
        let allowed = ["\"ByNamespace\"".to_owned(), "\"ByUser\"".to_owned()];
        let shown = json!({"Type": kind.as_text()});
        causes.push(field::not_supported(kind.path(), &shown, &allowed));
    }
    let level = spec.child("priorityLevelConfiguration").then("name");
    if level.as_text().is_empty() {
        causes.push(level.required("must reference a priority level"));
    } else {
        level.each(names::subdomain_errors, causes);
    }
    for rule in spec.child("rules").elements() {
        check_rule(&rule, causes);
    }
}

fn check_rule(rule: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let subjects = rule.child("subjects");
    if subjects.len() == 0 {
        causes.push(subjects.required("subjects must contain at least one value"));
    }
    for subject in subjects.elements() {
        check_subject(&subject, causes);
    }
    let (resources, paths) = (rule.child("resourceRules"), rule.child("nonResourceRules"));
    if resources.len() == 0 && paths.len() == 0 {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        causes.push(rule.required(why));
    }
    for rule in resources.elements() {
        check_resources(&rule, causes);
    }
    for rule in paths.elements() {
        check_verbs(&rule.child("verbs"), causes);
        check_paths(&rule.child("nonResourceURLs"), causes);
    }
}

fn check_subject(subject: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let kind = subject.child("kind");
    for (part, wanted) in [
        ("serviceAccount", "ServiceAccount"),
        ("user", "User"),
        ("group", "Group"),
    ] {
        let part = subject.child(part);
        let name = part
            .path()
            .rsplit('.')
            .next()
            .unwrap_or_default()
            .to_owned();
        if kind.as_text() != wanted {
            if part.is_set() && ["ServiceAccount", "User", "Group"].contains(&kind.as_text()) {
                let why = format!("{name} is forbidden when subject kind is not '{wanted}'");
                causes.push(part.forbidden(&why));
            }
            continue;
        }
        if !part.is_set() {
            let why = format!("{name} is required when subject kind is '{wanted}'");
            causes.push(part.required(&why));
            continue;
        }
        let named = part.child("name");
        if named.as_text().is_empty() {
            causes.push(named.required(""));
        } else if wanted == "ServiceAccount" && named.as_text() != "*" {
            named.each(names::subdomain_errors, causes);
        }
        let namespace = part.child("namespace");
        if wanted == "ServiceAccount" {
            if namespace.as_text().is_empty() {
                let why = "must specify namespace for service account";
                causes.push(namespace.required(why));
            } else {
                namespace.each(names::label_errors, causes);
            }
        }
    }
    if !["ServiceAccount", "User", "Group"].contains(&kind.as_text()) {
        causes.push(kind.not_supported(&["Group", "ServiceAccount", "User"]));
    }
}

fn check_verbs(verbs: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if verbs.len() == 0 {
        causes.push(verbs.required("verbs must contain at least one value"));
        return;
    }
    if verbs.elements().any(|verb| verb.as_text() == "*") {
        if verbs.len() > 1 {
            causes.push(verbs.invalid("if '*' is present, must not specify other verbs"));
        }
    } else if !verbs.elements().all(|verb| VERBS.contains(&verb.as_text())) {
        causes.push(verbs.not_supported(VERBS));
    }
}

fn check_resources(rule: &At<'_, '_>, causes: &mut Vec<Cause>) {
    check_verbs(&rule.child("verbs"), causes);
    for (part, one, others) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let part = rule.child(part);
        if part.len() == 0 {
            let why = format!("resource rules must supply at least one {one}");
            causes.push(part.required(&why));
        } else if part.len() > 1 && part.elements().any(|item| item.as_text() == "*") {
            let why = format!("if '*' is present, must not specify other {others}");
            causes.push(part.invalid(&why));
        }
    }
    let namespaces = rule.child("namespaces");
    let everywhere = rule.child("clusterScope").value == true;
    if namespaces.len() == 0 && !everywhere {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        causes.push(namespaces.required(why));
    } else if namespaces.len() > 1 && namespaces.elements().any(|one| one.as_text() == "*") {
        let why = "if '*' is present, must not specify other namespaces";
        causes.push(namespaces.invalid(why));
    } else {
        let member = "each member of this list must be '*' or a DNS-1123 label; ";
        for namespace in namespaces.elements().filter(|one| one.as_text() != "*") {
            for why in names::label_errors(namespace.as_text()) {
                causes.push(namespace.invalid(&format!("{member}{why}")));
            }
        }
    }
}

fn check_paths(paths: &At<'_, '_>, causes: &mut Vec<Cause>) {
    if paths.len() == 0 {
        let why = "nonResourceURLs must contain at least one value";
        causes.push(paths.required(why));
        return;
    }
    if paths.elements().any(|path| path.as_text() == "*") {
        if paths.len() > 1 {
            let why = "if '*' is present, must not specify other non-resource URLs";
            causes.push(paths.invalid(why));
        }
        return;
    }
    for path in paths.elements() {
        let text = path.as_text();
        let why = if text.is_empty() {
            "must not be empty"
        } else if !text.starts_with('/') {
            "must start with slash"
        } else if text.contains(' ') {
            "must not contain white-space"
        } else if text.contains("//") {
            "must not contain double slash"
        } else if text.strip_suffix("/*").unwrap_or(text).contains('*') {
            "wildcard can only do suffix matching"
        } else {
            continue;
        };
        causes.push(path.invalid(why));
    }
}

pub(crate) fn check_level(level: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(level, "").then("spec");
    let kind = spec.child("type");
    let exempt = meta(level, "name") == "exempt";
    if !kind.as_text().is_empty() && exempt != (kind.as_text() == "Exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        causes.push(kind.invalid(why));
    }
    match kind.as_text() {
        "Exempt" => {
            let limited = spec.child("limited");
            if limited.is_set() {
                causes.push(limited.forbidden("must be nil if the type is not Limited"));
            }
        }
        "Limited" => {
            let exempt = spec.child("exempt");
            if exempt.is_set() {
                causes.push(exempt.forbidden("must be nil if the type is Limited"));
            }
            let limited = spec.child("limited");
            if limited.is_set() {
                check_limited(&limited, causes);
            } else {
                causes.push(limited.required("must not be empty when type is Limited"));
            }
        }
        _ => kind.one_of(&["Exempt", "Limited"], causes),
    }
}

fn check_limited(limited: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let shares = limited.child("nominalConcurrencyShares");
    if shares.as_int() < 0 {
        causes.push(shares.invalid("must be a non-negative integer"));
    }
    let response = limited.child("limitResponse");
    let queuing = response.child("queuing");
    let kind = response.child("type");
    match kind.as_text() {
        "Reject" if queuing.is_set() => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            causes.push(queuing.forbidden(why));
        }
        "Queue" if !queuing.is_set() => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            causes.push(queuing.required(why));
        }
        "Queue" => check_queuing(&queuing, causes),
        "Reject" => {}
        _ => causes.push(kind.not_supported(&["Queue", "Reject"])),
    }
    let lendable = limited.child("lendablePercent");
    if !(0..=100).contains(&lendable.as_int()) {
        causes.push(lendable.invalid("must be between 0 and 100, inclusive"));
    }
    let borrowed = limited.child("borrowingLimitPercent");
    if borrowed.as_int() < 0 {
        causes.push(borrowed.invalid("if specified, must be a non-negative integer"));
    }
}

fn check_queuing(queuing: &At<'_, '_>, causes: &mut Vec<Cause>) {
    let length = queuing.child("queueLengthLimit");
    let (queues, hand) = (queuing.child("queues"), queuing.child("handSize"));
    let most = 10_000_000;
    for (part, positive) in [(&length, "must be positive"), (&queues, "must be positive")] {
        if part.is_set() && part.as_int() <= 0 {
            causes.push(part.invalid(positive));
        }
    }
    if queues.as_int() > most {
        causes.push(queues.invalid(&format!("must not be greater than {most}")));
    }
    if hand.is_set() && hand.as_int() <= 0 {
        causes.push(hand.invalid("must be positive"));
    }
    if hand.as_int() > queues.as_int() {
        let why = format!("should not be greater than queues ({})", queues.as_int());
        causes.push(hand.invalid(&why));
    }
}
