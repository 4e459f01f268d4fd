//! `FlowSchemas` and `PriorityLevelConfigurations`.

use serde_json::{Value, json};

use super::place::At;
use crate::names;
use crate::object::meta;
use crate::status::{Cause, field};

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

pub(super) fn check_schema(schema: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(schema).get("spec");
    let precedence = spec.get("matchingPrecedence");
    if precedence.int() <= 0 {
        causes.push(precedence.invalid_int("must be a positive value"));
    }
    if precedence.int() > LAST {
        causes.push(precedence.invalid("must not be greater than 10000"));
    }
    let method = spec.get("distinguisherMethod");
    let kind = method.get("type");
    if method.is_set() && !["ByNamespace", "ByUser"].contains(&kind.text()) {
        let allowed = ["\"ByNamespace\"".to_owned(), "\"ByUser\"".to_owned()];
        let shown = json!({"Type": kind.text()});
        causes.push(field::not_supported(kind.path, &shown, &allowed));
    }
    let level = spec.get("priorityLevelConfiguration").get("name");
    if level.text().is_empty() {
        causes.push(level.required("must reference a priority level"));
    } else {
        level.each(names::subdomain_errors, causes);
    }
    for rule in spec.get("rules").items() {
        check_rule(&rule, causes);
    }
}

fn check_rule(rule: &At<'_>, causes: &mut Vec<Cause>) {
    let subjects = rule.get("subjects");
    if subjects.len() == 0 {
        causes.push(subjects.required("subjects must contain at least one value"));
    }
    for subject in subjects.items() {
        check_subject(&subject, causes);
    }
    let (resources, paths) = (rule.get("resourceRules"), rule.get("nonResourceRules"));
    if resources.len() == 0 && paths.len() == 0 {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        causes.push(rule.required(why));
    }
    for rule in resources.items() {
        check_resources(&rule, causes);
    }
    for rule in paths.items() {
        check_verbs(&rule.get("verbs"), causes);
        check_paths(&rule.get("nonResourceURLs"), causes);
    }
}

fn check_subject(subject: &At<'_>, causes: &mut Vec<Cause>) {
    let kind = subject.get("kind");
    for (part, wanted) in [
        ("serviceAccount", "ServiceAccount"),
        ("user", "User"),
        ("group", "Group"),
    ] {
        let part = subject.get(part);
        let name = part.path.rsplit('.').next().unwrap_or_default().to_owned();
        if kind.text() != wanted {
            if part.is_set() && ["ServiceAccount", "User", "Group"].contains(&kind.text()) {
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
        let named = part.get("name");
        if named.text().is_empty() {
            causes.push(named.required(""));
        } else if wanted == "ServiceAccount" && named.text() != "*" {
            named.each(names::subdomain_errors, causes);
        }
        let namespace = part.get("namespace");
        if wanted == "ServiceAccount" {
            if namespace.text().is_empty() {
                let why = "must specify namespace for service account";
                causes.push(namespace.required(why));
            } else {
                namespace.each(names::label_errors, causes);
            }
        }
    }
    if !["ServiceAccount", "User", "Group"].contains(&kind.text()) {
        causes.push(kind.unsupported(&["Group", "ServiceAccount", "User"]));
    }
}

fn check_verbs(verbs: &At<'_>, causes: &mut Vec<Cause>) {
    if verbs.len() == 0 {
        causes.push(verbs.required("verbs must contain at least one value"));
        return;
    }
    if verbs.items().any(|verb| verb.text() == "*") {
        if verbs.len() > 1 {
            causes.push(verbs.invalid("if '*' is present, must not specify other verbs"));
        }
    } else if !verbs.items().all(|verb| VERBS.contains(&verb.text())) {
        causes.push(verbs.unsupported(VERBS));
    }
}

fn check_resources(rule: &At<'_>, causes: &mut Vec<Cause>) {
    check_verbs(&rule.get("verbs"), causes);
    for (part, one, others) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let part = rule.get(part);
        if part.len() == 0 {
            let why = format!("resource rules must supply at least one {one}");
            causes.push(part.required(&why));
        } else if part.len() > 1 && part.items().any(|item| item.text() == "*") {
            let why = format!("if '*' is present, must not specify other {others}");
            causes.push(part.invalid(&why));
        }
    }
    let namespaces = rule.get("namespaces");
    let everywhere = rule.get("clusterScope").value == true;
    if namespaces.len() == 0 && !everywhere {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        causes.push(namespaces.required(why));
    } else if namespaces.len() > 1 && namespaces.items().any(|one| one.text() == "*") {
        let why = "if '*' is present, must not specify other namespaces";
        causes.push(namespaces.invalid(why));
    } else {
        let member = "each member of this list must be '*' or a DNS-1123 label; ";
        for namespace in namespaces.items().filter(|one| one.text() != "*") {
            for why in names::label_errors(namespace.text()) {
                causes.push(namespace.invalid(&format!("{member}{why}")));
            }
        }
    }
}

fn check_paths(paths: &At<'_>, causes: &mut Vec<Cause>) {
    if paths.len() == 0 {
        let why = "nonResourceURLs must contain at least one value";
        causes.push(paths.required(why));
        return;
    }
    if paths.items().any(|path| path.text() == "*") {
        if paths.len() > 1 {
            let why = "if '*' is present, must not specify other non-resource URLs";
            causes.push(paths.invalid(why));
        }
        return;
    }
    for path in paths.items() {
        let text = path.text();
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

pub(super) fn check_level(level: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(level).get("spec");
    let kind = spec.get("type");
    let exempt = meta(level, "name") == "exempt";
    if !kind.text().is_empty() && exempt != (kind.text() == "Exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        causes.push(kind.invalid(why));
    }
    match kind.text() {
        "Exempt" => {
            let limited = spec.get("limited");
            if limited.is_set() {
                causes.push(limited.forbidden("must be nil if the type is not Limited"));
            }
        }
        "Limited" => {
            let exempt = spec.get("exempt");
            if exempt.is_set() {
                causes.push(exempt.forbidden("must be nil if the type is Limited"));
            }
            let limited = spec.get("limited");
            if limited.is_set() {
                check_limited(&limited, causes);
            } else {
                causes.push(limited.required("must not be empty when type is Limited"));
            }
        }
        _ => kind.one_of(&["Exempt", "Limited"], causes),
    }
}

fn check_limited(limited: &At<'_>, causes: &mut Vec<Cause>) {
    let shares = limited.get("nominalConcurrencyShares");
    if shares.int() < 0 {
        causes.push(shares.invalid("must be a non-negative integer"));
    }
    let response = limited.get("limitResponse");
    let queuing = response.get("queuing");
    let kind = response.get("type");
    match kind.text() {
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
        _ => causes.push(kind.unsupported(&["Queue", "Reject"])),
    }
    let lendable = limited.get("lendablePercent");
    if !(0..=100).contains(&lendable.int()) {
        causes.push(lendable.invalid("must be between 0 and 100, inclusive"));
    }
    let borrowed = limited.get("borrowingLimitPercent");
    if borrowed.int() < 0 {
        causes.push(borrowed.invalid("if specified, must be a non-negative integer"));
    }
}

fn check_queuing(queuing: &At<'_>, causes: &mut Vec<Cause>) {
    let part = |name: &str| queuing.get(name);
    let (length, queues, hand) = (part("queueLengthLimit"), part("queues"), part("handSize"));
    let most = 10_000_000;
    for (part, positive) in [(&length, "must be positive"), (&queues, "must be positive")] {
        if part.is_set() && part.int() <= 0 {
            causes.push(part.invalid(positive));
        }
    }
    if queues.int() > most {
        causes.push(queues.invalid(&format!("must not be greater than {most}")));
    }
    if hand.is_set() && hand.int() <= 0 {
        causes.push(hand.invalid("must be positive"));
    }
    if hand.int() > queues.int() {
        let why = format!("should not be greater than queues ({})", queues.int());
        causes.push(hand.invalid(&why));
    }
}
