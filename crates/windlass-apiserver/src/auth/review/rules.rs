//! `SelfSubjectRulesReview`: what may I do in this namespace?

use serde_json::{Value, json};

use crate::auth::rbac::Rule;
use crate::status::{ApiError, Result};
use crate::verbs::Call;

pub(super) fn answer(call: &Call<'_>, review: &Value) -> Result<Value> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in call.server.rbac().granted_rules(call.who, namespace) {
        if !rule.resources.is_empty() {
            let rule = Rule {
                paths: Vec::new(),
                ..rule.clone()
            };
            resources.push(rule.to_value());
        }
        if !rule.paths.is_empty() {
            paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.paths}));
        }
    }
    Ok(json!({
        "kind": review["kind"],
        "apiVersion": review["apiVersion"],
        "metadata": {},
        "spec": {},
        "status": {"resourceRules": resources, "nonResourceRules": paths, "incomplete": false},
    }))
}
