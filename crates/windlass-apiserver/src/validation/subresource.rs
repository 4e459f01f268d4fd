//! What of a pod is changed through a path of its own: ephemeral containers, and resources.

use std::collections::BTreeSet;

use serde_json::Value;

use super::place::At;
use super::pod;
use crate::names;
use crate::status::{Cause, field};

/// What a container that is only looked through may not have.
const NOT_EPHEMERAL: &[&str] = &[
    "ports",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "resources",
    "resizePolicy",
];

/// Ephemeral containers come, and neither change nor go.
pub(super) fn check_ephemeral(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let spec = At::root(new).get("spec");
    let list = spec.get("ephemeralContainers");
    let name_of = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
    let mut names = BTreeSet::new();
    for part in ["containers", "initContainers"] {
        let others = spec.get(part);
        names.extend(others.items().map(|one| name_of(one.value)));
    }
    let targets = names.clone();
    for one in list.items() {
        let name = one.get("name");
        if name.text().is_empty() {
            causes.push(name.required(""));
        } else {
            name.each(names::label_errors, causes);
            if !names.insert(name.text().to_owned()) {
                causes.push(name.duplicate());
            }
        }
        let image = one.get("image");
        if image.text().is_empty() {
            causes.push(image.required(""));
        }
        let target = one.get("targetContainerName");
        if !target.text().is_empty() && !targets.contains(target.text()) {
            causes.push(field::not_found(target.path.as_str(), target.value));
        }
        for part in NOT_EPHEMERAL.iter().map(|part| one.get(part)) {
            if !part.is_zero() {
                causes.push(part.forbidden("cannot be set for an Ephemeral Container"));
            }
        }
    }
    let before = old["spec"]["ephemeralContainers"].as_array();
    for known in before.into_iter().flatten() {
        let name = name_of(known);
        let now = list.items().find(|one| name_of(one.value) == name);
        let why = match now {
            None => format!("existing ephemeral containers {name:?} may not be removed\n"),
            Some(now) if now.value != known => {
                format!("existing ephemeral containers {name:?} may not be changed")
            }
            Some(_) => continue,
        };
        causes.push(list.forbidden(&why));
    }
}

/// What a container asks for may change, as long as the pod stays what it is.
pub(super) fn check_resize(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    pod::check(&new["spec"], "spec", causes);
    let class = |pod: &Value| crate::strategy::qos_class(pod);
    let mut removed = false;
    let mut others = false;
    for part in ["containers", "initContainers"] {
        let list = |pod: &Value| pod["spec"][part].as_array().cloned().unwrap_or_default();
        let before = list(old);
        for (index, now) in list(new).iter().enumerate() {
            let Some(then) = before.iter().find(|one| one["name"] == now["name"]) else {
                continue;
            };
            for kind in ["limits", "requests"] {
                let amounts = |one: &Value| {
                    one["resources"][kind]
                        .as_object()
                        .cloned()
                        .unwrap_or_default()
                };
                let (now, then) = (amounts(now), amounts(then));
                if then.keys().any(|key| !now.contains_key(key)) {
                    removed = true;
                    let path = format!("spec.{part}[{index}].resources.{kind}");
                    let why = format!("resource {kind} cannot be removed");
                    causes.push(field::forbidden(path, &why));
                }
                let keys: BTreeSet<&String> = now.keys().chain(then.keys()).collect();
                others |= keys.into_iter().any(|key| {
                    !matches!(key.as_str(), "cpu" | "memory") && now.get(key) != then.get(key)
                });
            }
        }
    }
    if removed || !causes.is_empty() {
        return;
    }
    if others {
        causes.push(field::forbidden(
            "spec",
            "only cpu and memory resources are mutable",
        ));
    } else if class(new) != class(old) {
        let why = "Pod QOS Class may not change as a result of resizing";
        causes.push(field::invalid("spec", &class(old).into(), why));
    }
}
