//! Requests for certificates: what is asked for is for good, and deciding is a thing of its own.

use serde_json::{Value, json};

use crate::auth::Identity;
use crate::object::set_meta;
use crate::system_fields::move_field;

/// Nothing of a request is anybody's but through the path that may change it.
pub(crate) fn reset_fields(subresource: &str) -> &'static [&'static [&'static str]] {
    match subresource {
        "status" => &[&["spec"], &["status", "conditions"]],
        "approval" => &[&["spec"], &["status", "certificate"]],
        _ => &[&["spec"], &["status"]],
    }
}

/// Who asks is known, whatever the request says.
pub(crate) fn set_requester(request: &mut Value, who: &Identity) {
    let Some(spec) = request["spec"].as_object_mut() else {
        return;
    };
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    let mut set = |field: &str, value: Value, known: bool| {
        if known {
            spec.insert(field.to_owned(), value);
        }
    };
    set("username", who.user.as_str().into(), !who.user.is_empty());
    set("uid", who.uid.as_str().into(), !who.uid.is_empty());
    set("groups", json!(who.groups), !who.groups.is_empty());
    set("extra", json!(who.extra), !who.extra.is_empty());
}

/// Approving changes the conditions alone.
pub(crate) fn keep_all_but_conditions(new: &mut Value, old: &Value) {
    let mut kept = old.clone();
    move_field(new, &mut kept, "metadata");
    let conditions = new["status"]["conditions"].take();
    if kept["status"].is_null() {
        kept["status"] = json!({});
    }
    if let Some(status) = kept["status"].as_object_mut() {
        if conditions.is_null() {
            status.remove("conditions");
        } else {
            status.insert("conditions".into(), conditions);
        }
    }
    let version = new["metadata"].get("resourceVersion").cloned();
    if version.is_some() {
        set_meta(&mut kept, "resourceVersion", version);
    }
    *new = kept;
}

fn conditions_mut(request: &mut Value) -> impl Iterator<Item = &mut Value> {
    let conditions = request
        .get_mut("status")
        .and_then(|status| status.get_mut("conditions"))
        .and_then(Value::as_array_mut);
    conditions.into_iter().flatten()
}

fn decided(condition: &Value) -> bool {
    condition["type"] == "Approved" || condition["type"] == "Denied"
}

/// Through the status nobody changes what was decided.
pub(crate) fn keep_decisions(new: &mut Value, old: &Value) {
    let of = |object: &Value, kind: &str| -> Vec<Value> {
        let conditions = object["status"]["conditions"].as_array();
        let all = conditions.into_iter().flatten();
        all.filter(|one| one["type"] == kind).cloned().collect()
    };
    for kind in ["Approved", "Denied"] {
        let before = of(old, kind);
        if of(new, kind).len() != before.len() {
            continue;
        }
        for (now, before) in conditions_mut(new)
            .filter(|one| decided(one) && one["type"] == kind)
            .zip(before)
        {
            *now = before;
        }
    }
}

/// When each condition was written, and since when it holds.
pub(crate) fn set_times(new: &mut Value, old: &Value, now: &str) {
    let before = old["status"]["conditions"].as_array().cloned();
    let before = before.unwrap_or_default();
    for condition in conditions_mut(new) {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = now.into();
        }
        if condition["lastTransitionTime"].is_null() {
            let same = before.iter().find(|one| {
                one["type"] == condition["type"]
                    && one["status"] == condition["status"]
                    && !one["lastTransitionTime"].is_null()
            });
            condition["lastTransitionTime"] = match same {
                Some(same) => same["lastTransitionTime"].clone(),
                None => now.into(),
            };
        }
    }
}
