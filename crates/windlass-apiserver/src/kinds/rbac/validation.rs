//! Roles and bindings.

use serde_json::{Value, json};

use crate::names;
use crate::status::{Cause, field};
use crate::validation::at::At;

const GROUP: &str = "rbac.authorization.k8s.io";

fn is_empty(value: &Value) -> bool {
    value.as_array().is_none_or(Vec::is_empty)
}

fn quoted(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| format!("\"{text}\"")).collect()
}

/// The rules of a role: about resources or, in the whole cluster only, about paths.
pub(crate) fn check(role: &Value, namespaced: bool, causes: &mut Vec<Cause>) {
    let rules = role["rules"].as_array().into_iter().flatten();
    for (index, rule) in rules.enumerate() {
        let at = |part: &str| format!("rules[{index}].{part}");
        if is_empty(&rule["verbs"]) {
            let why = "verbs must contain at least one value";
            causes.push(field::required(at("verbs"), why));
        }
        if !is_empty(&rule["nonResourceURLs"]) {
            let mut wrong = |why: &str| {
                let path = at("nonResourceURLs");
                causes.push(field::invalid(path, &rule["nonResourceURLs"], why));
            };
            if namespaced {
                wrong("namespaced rules cannot apply to non-resource URLs");
            }
            let parts = ["apiGroups", "resources", "resourceNames"];
            if parts.iter().any(|part| !is_empty(&rule[*part])) {
                wrong("rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        if is_empty(&rule["apiGroups"]) {
            let why = "resource rules must supply at least one api group";
            causes.push(field::required(at("apiGroups"), why));
        }
        if is_empty(&rule["resources"]) {
            let why = "resource rules must supply at least one resource";
            causes.push(field::required(at("resources"), why));
        }
    }
    let selectors = At::root(role, "")
        .then("aggregationRule")
        .then("clusterRoleSelectors");
    for selector in selectors.elements() {
        let before = causes.len();
        crate::validation::label::selector(&selector, causes);
        if causes.len() > before {
            let why = "invalid label selector.";
            causes.push(field::invalid(selector.path(), &Value::Null, why));
        }
    }
    if role["aggregationRule"].is_object()
        && is_empty(&role["aggregationRule"]["clusterRoleSelectors"])
    {
        causes.push(field::required(
            "aggregationRule.clusterRoleSelectors",
            "at least one clusterRoleSelector required if aggregationRule is non-nil",
        ));
    }
}

/// A binding: the role it refers to, and whom it is for.
pub(crate) fn check_binding(binding: &Value, namespaced: bool, causes: &mut Vec<Cause>) {
    let role = &binding["roleRef"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if text(&role["apiGroup"]) != GROUP {
        let group = text(&role["apiGroup"]).into();
        let allowed = quoted(&[GROUP]);
        causes.push(field::not_supported("roleRef.apiGroup", &group, &allowed));
    }
    let kinds: &[&str] = if namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    let kind = text(&role["kind"]);
    if !kinds.contains(&kind.as_str()) {
        let allowed = quoted(kinds);
        causes.push(field::not_supported("roleRef.kind", &kind.into(), &allowed));
    }
    let name = text(&role["name"]);
    if name.is_empty() {
        causes.push(field::required("roleRef.name", ""));
    }
    for why in names::segment_errors(&name) {
        let name = name.as_str().into();
        causes.push(field::invalid("roleRef.name", &name, &why));
    }
    let subjects = binding["subjects"].as_array().into_iter().flatten();
    for (index, subject) in subjects.enumerate() {
        check_subject(subject, namespaced, &format!("subjects[{index}]"), causes);
    }
}

fn check_subject(subject: &Value, namespaced: bool, path: &str, causes: &mut Vec<Cause>) {
    let text = |part: &str| subject[part].as_str().unwrap_or_default();
    let at = |part: &str| format!("{path}.{part}");
    let (name, group) = (text("name"), text("apiGroup"));
    if name.is_empty() {
        causes.push(field::required(at("name"), ""));
    }
    let allowed_group = match text("kind") {
        "ServiceAccount" => "",
        "User" | "Group" => GROUP,
        other => {
            let allowed = quoted(&["ServiceAccount", "User", "Group"]);
            causes.push(field::not_supported(at("kind"), &other.into(), &allowed));
            return;
        }
    };
    let is_account = allowed_group.is_empty();
    if is_account && !name.is_empty() {
        for why in names::subdomain_errors(name) {
            causes.push(field::invalid(at("name"), &name.into(), &why));
        }
    }
    if group != allowed_group {
        let allowed = quoted(&[allowed_group]);
        causes.push(field::not_supported(
            at("apiGroup"),
            &group.into(),
            &allowed,
        ));
    }
    if is_account && !namespaced && text("namespace").is_empty() {
        causes.push(field::required(at("namespace"), ""));
    }
}

/// What a binding refers to is for life; it is shown under the names of the Go struct.
pub(crate) fn check_reference(new: &Value, old: &Value) -> Option<Cause> {
    let (new, old) = (&new["roleRef"], &old["roleRef"]);
    (new != old).then(|| {
        let shown = json!({"APIGroup": new["apiGroup"], "Kind": new["kind"], "Name": new["name"]});
        field::invalid("roleRef", &shown, "cannot change roleRef")
    })
}
