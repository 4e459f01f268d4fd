//! Which of the names a definition asks for it gets, and what its status says about that.
//!
//! In a group every name is given once: plurals, singulars and short names together, and kinds
//! and list kinds together. A definition keeps what it has, gets what is free, and is served once
//! it has got all it asked for.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::CLEANUP_FINALIZER;
use super::approval::{Approval, approval};
use super::definition::has_condition;
use windlass_apimachinery::object::{finalizers, set_meta};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The status of a definition among the `others` there are.
pub fn status_of(crd: &Value, others: &[Value], now: &str) -> Value {
    let mut new = crd.clone();
    if crd["spec"]["names"] != crd["status"]["acceptedNames"] {
        let (accepted, conflict) = accept(crd, others);
        new["status"]["acceptedNames"] = accepted;
        let (status, reason, message) = match &conflict {
            None => ("True", "NoConflicts", "no conflicts found"),
            Some((reason, message)) => ("False", *reason, message.as_str()),
        };
        set_condition(&mut new, "NamesAccepted", status, reason, message, now);
        if !has_condition(crd, "Established") {
            let (status, reason, message) = if conflict.is_none() {
                (
                    "True",
                    "InitialNamesAccepted",
                    "the initial names have been accepted",
                )
            } else {
                ("False", "NotAccepted", "not all names are accepted")
            };
            set_condition(&mut new, "Established", status, reason, message, now);
        }
    }
    if let Some((approved, message)) = approval(crd) {
        let (status, reason) = match approved {
            Approval::Approved => ("True", "ApprovedAnnotation"),
            Approval::Bypassed => ("False", "UnapprovedAnnotation"),
            Approval::Missing => ("False", "MissingAnnotation"),
            Approval::Invalid => ("False", "InvalidAnnotation"),
        };
        let kind = "KubernetesAPIApprovalPolicyConformant";
        set_condition(&mut new, kind, status, reason, &message, now);
    }
    new["status"].take()
}

/// The names a definition gets, and the last conflict that kept it from one.
fn accept(crd: &Value, others: &[Value]) -> (Value, Option<(&'static str, String)>) {
    let (wanted, has) = (&crd["spec"]["names"], &crd["status"]["acceptedNames"]);
    let group = &crd["spec"]["group"];
    let given = || {
        let others = others.iter().chain([crd]);
        others
            .filter(|other| other["spec"]["group"] == *group)
            .map(|other| &other["status"]["acceptedNames"])
    };
    let mut resources: BTreeSet<&str> = BTreeSet::new();
    let mut kinds: BTreeSet<&str> = BTreeSet::new();
    for names in given() {
        resources.extend([text(&names["plural"]), text(&names["singular"])]);
        let short = names["shortNames"].as_array();
        resources.extend(short.into_iter().flatten().map(text));
        kinds.extend([text(&names["kind"]), text(&names["listKind"])]);
    }
    let in_use = |name: &str| format!("{name:?} is already in use");
    let mut accepted = if has.is_object() {
        has.clone()
    } else {
        json!({})
    };
    let mut conflict = None;
    let mut one = |part: &str, reason: &'static str, used: &BTreeSet<&str>| {
        let name = text(&wanted[part]);
        if name != text(&has[part]) && used.contains(name) {
            conflict = Some((reason, in_use(name)));
        } else {
            accepted[part] = wanted[part].clone();
        }
    };
    one("plural", "PluralConflict", &resources);
    one("singular", "SingularConflict", &resources);
    one("kind", "KindConflict", &kinds);
    one("listKind", "ListKindConflict", &kinds);
    let last = conflict.take();
    let texts = |names: &Value| -> Vec<String> {
        let names = names.as_array().into_iter().flatten();
        names.map(|name| text(name).to_owned()).collect()
    };
    let (short, had) = (texts(&wanted["shortNames"]), texts(&has["shortNames"]));
    let mut taken: Vec<String> = short
        .iter()
        .filter(|name| !had.contains(name) && resources.contains(name.as_str()))
        .map(|name| in_use(name))
        .collect();
    let short_conflict = (!taken.is_empty()).then(|| {
        let message = if taken.len() == 1 {
            taken.remove(0)
        } else {
            format!("[{}]", taken.join(", "))
        };
        ("ShortNamesConflict", message)
    });
    for (part, value) in [
        ("shortNames", &wanted["shortNames"]),
        ("categories", &wanted["categories"]),
    ] {
        if part == "shortNames" && short_conflict.is_some() {
            continue;
        }
        if let Some(map) = accepted.as_object_mut() {
            match value.as_array() {
                Some(names) if !names.is_empty() => map.insert(part.into(), value.clone()),
                _ => map.remove(part),
            };
        }
    }
    if text(&accepted["plural"]).is_empty() {
        accepted["plural"] = "".into();
    }
    if text(&accepted["kind"]).is_empty() {
        accepted["kind"] = "".into();
    }
    // Kinds are looked at after short names.
    let kind_conflict = last
        .as_ref()
        .is_some_and(|(reason, _)| reason.contains("Kind"));
    let conflict = if kind_conflict {
        last
    } else {
        short_conflict.or(last)
    };
    (accepted, conflict)
}

/// Marks a CRD that is going away: its objects are deleted before it is.
pub fn mark_terminating(crd: &mut Value, now: &str) {
    let mut kept: Vec<String> = finalizers(crd).into_iter().map(str::to_owned).collect();
    if kept.iter().all(|known| known != CLEANUP_FINALIZER) {
        kept.push(CLEANUP_FINALIZER.to_owned());
    }
    set_meta(crd, "finalizers", Some(json!(kept)));
    set_condition(
        crd,
        "Terminating",
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        now,
    );
}

/// Sets a condition; when it changed is told anew only if it did.
pub fn set_condition(
    crd: &mut Value,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    let conditions = &mut crd["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    let known = conditions.iter_mut().find(|known| known["type"] == kind);
    match known {
        Some(known) => {
            if known["status"] != status {
                known["lastTransitionTime"] = now.into();
            }
            known["status"] = status.into();
            known["reason"] = reason.into();
            known["message"] = message.into();
        }
        None => conditions.push(json!({
            "type": kind,
            "status": status,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        })),
    }
}
