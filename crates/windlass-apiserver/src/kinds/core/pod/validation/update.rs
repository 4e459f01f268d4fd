//! What may change of a pod that is there.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::toleration;
use crate::validation::at::{At, Causes};
use crate::validation::internal;

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const MAX_SECONDS: i64 = i32::MAX as i64;

/// Changes of the pod itself: images, deadlines, additional tolerations, fewer gates.
pub(crate) fn check(new: &Value, old: &Value, causes: &mut Causes) {
    let (spec, before) = (
        At::root(&new["spec"], "spec"),
        At::root(&old["spec"], "spec"),
    );
    for list in ["containers", "initContainers"] {
        if spec.list(list).len() != before.list(list).len() {
            let why = "pod updates may not add or remove containers";
            causes.push(spec.child(list).forbidden(why));
            return;
        }
        for container in spec.items(list) {
            if container.text("image").is_empty() {
                causes.push(container.child("image").required(""));
            }
            super::container::image_padding(&container, causes);
        }
    }
    if !deadline(&spec, &before, causes) {
        return;
    }
    tolerations(&spec, &before, causes);
    gates(&spec, &before, causes);
    let mut munged = new["spec"].clone();
    keep_what_may_change(&mut munged, &old["spec"]);
    if !before.list("schedulingGates").is_empty() {
        while_gated(&spec, &before, &mut munged, causes);
    }
    if without_aliases(&munged) != without_aliases(&old["spec"]) {
        let told = internal::diff(&old["spec"], &munged, "core.PodSpec");
        causes.push(spec.forbidden(&format!("{UPDATABLE}\n{told}")));
    }
}

/// The spec without the older name of the account, which only repeats it.
fn without_aliases(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(map) = spec.as_object_mut() {
        map.remove("serviceAccount");
        map.retain(|_, value| !value.is_null());
    }
    spec
}

/// Whether the rest is worth looking at.
fn deadline(spec: &At<'_, '_>, before: &At<'_, '_>, causes: &mut Causes) -> bool {
    let at = spec.child("activeDeadlineSeconds");
    match (at.value.as_i64(), before.int("activeDeadlineSeconds")) {
        (Some(now), _) if !(0..=MAX_SECONDS).contains(&now) => {
            at.between(0, MAX_SECONDS, causes);
            false
        }
        (Some(now), Some(before)) if before < now => {
            causes.push(at.invalid("must be less than or equal to previous value"));
            false
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            causes.push(at.invalid(why));
            true
        }
        _ => true,
    }
}

fn tolerations(spec: &At<'_, '_>, before: &At<'_, '_>, causes: &mut Causes) {
    let timeless = |toleration: &Value| {
        let mut toleration = toleration.as_object().cloned().unwrap_or_default();
        toleration.remove("tolerationSeconds");
        toleration
    };
    let timeless = |toleration: &Value| Value::Object(timeless(toleration)).to_string();
    let now: BTreeSet<String> = spec.list("tolerations").iter().map(timeless).collect();
    let mut before = before.list("tolerations").iter();
    let kept = before.all(|old| now.contains(&timeless(old)));
    if kept {
        toleration::check(spec, "tolerations", causes);
    } else {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(spec.child("tolerations").forbidden(why));
    }
}

fn gates(spec: &At<'_, '_>, before: &At<'_, '_>, causes: &mut Causes) {
    let before = before.list("schedulingGates").iter();
    let before: BTreeSet<&str> = before.filter_map(|old| old["name"].as_str()).collect();
    for gate in spec.items("schedulingGates") {
        let name = gate.text("name");
        if !before.contains(name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            causes.push(gate.child("name").forbidden(&why));
        }
    }
}

/// Puts back what may change, so that what is left to compare may not.
fn keep_what_may_change(munged: &mut Value, old: &Value) {
    for list in ["containers", "initContainers"] {
        let containers = munged.get_mut(list).and_then(Value::as_array_mut);
        for (index, container) in containers.into_iter().flatten().enumerate() {
            container["image"] = old[list][index]["image"].clone();
        }
    }
    let one_after_none = old["terminationGracePeriodSeconds"]
        .as_i64()
        .is_some_and(|old| old < 0)
        && munged["terminationGracePeriodSeconds"] == 1;
    let mut kept = vec!["activeDeadlineSeconds", "schedulingGates", "tolerations"];
    if one_after_none {
        kept.push("terminationGracePeriodSeconds");
    }
    for field in kept {
        put_back(munged, old, field);
    }
}

fn put_back(munged: &mut Value, old: &Value, field: &str) {
    if let Some(map) = munged.as_object_mut() {
        match old.get(field) {
            Some(value) => map.insert(field.to_owned(), value.clone()),
            None => map.remove(field),
        };
    }
}

/// A pod that waits for its gates may still be told more narrowly where to go.
fn while_gated(spec: &At<'_, '_>, before: &At<'_, '_>, munged: &mut Value, causes: &mut Causes) {
    if spec.value.get("nodeSelector") != before.value.get("nodeSelector") {
        let narrower = before
            .map("nodeSelector")
            .into_iter()
            .flatten()
            .all(|(key, value)| spec.value["nodeSelector"].get(key) == Some(value));
        if !narrower {
            let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            causes.push(spec.child("nodeSelector").invalid(why));
        }
        put_back(munged, before.value, "nodeSelector");
    }
    let path = |spec: &At<'_, '_>| spec.value["affinity"]["nodeAffinity"].clone();
    let (now, old) = (path(spec), path(before));
    if now == old {
        return;
    }
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = |affinity: &Value| {
        affinity[required]["nodeSelectorTerms"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let (now, before_terms) = (terms(&now), terms(&old));
    let at = format!("spec.affinity.nodeAffinity.{required}.nodeSelectorTerms");
    let wrong =
        |path: String, shown: &Value, why: &str| crate::status::field::invalid(path, shown, why);
    if !before_terms.is_empty() && now.len() != before_terms.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        causes.push(wrong(at, &now.into(), why));
    } else {
        for (index, (new, old)) in now.iter().zip(&before_terms).enumerate() {
            let grown = ["matchExpressions", "matchFields"].iter().all(|list| {
                let old = old[*list].as_array().cloned().unwrap_or_default();
                let new = new[*list].as_array().cloned().unwrap_or_default();
                new.starts_with(&old)
            });
            if !grown {
                let why = "only additions are allowed (no mutations or deletions)";
                causes.push(wrong(format!("{at}[{index}]"), new, why));
            }
        }
    }
    let mut affinity = munged.get("affinity").cloned().unwrap_or_else(|| json!({}));
    put_back(&mut affinity, &before.value["affinity"], "nodeAffinity");
    munged["affinity"] = affinity;
    if munged["affinity"] == json!({}) && !before.has("affinity") {
        put_back(munged, before.value, "affinity");
    }
}

/// Containers that were added to look around stay as they are.
pub(crate) fn check_ephemeral(new: &Value, old: &Value, causes: &mut Causes) {
    let spec = At::root(&new["spec"], "spec");
    let told = spec.child("ephemeralContainers");
    for before in old["spec"]["ephemeralContainers"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let name = &before["name"];
        match spec
            .list("ephemeralContainers")
            .iter()
            .find(|now| now["name"] == *name)
        {
            None => {
                let why = format!("existing ephemeral containers {name} may not be removed\n");
                causes.push(told.forbidden(&why));
            }
            Some(now) if now != before => {
                let diff = internal::diff(before, now, "core.EphemeralContainer");
                let why =
                    format!("existing ephemeral containers {name} may not be changed\n{diff}");
                causes.push(told.forbidden(&why));
            }
            Some(_) => {}
        }
    }
}
