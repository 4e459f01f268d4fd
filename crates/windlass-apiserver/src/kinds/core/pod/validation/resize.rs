//! Resizing: cpu and memory of containers may change while they run, nothing else.

use serde_json::Value;

use crate::kinds::core::pod::prepare::qos_class;
use crate::validation::at::{At, Causes};

pub(crate) fn check(new: &Value, old: &Value, causes: &mut Causes) {
    let spec = At::root(&new["spec"], "spec");
    let class = old["status"]["qosClass"].as_str().unwrap_or_default();
    if class != qos_class(new) {
        let why = "Pod QOS Class may not change as a result of resizing";
        causes.push(spec.invalid_value(class, why));
    }
    for list in ["containers", "initContainers"] {
        let before = old["spec"][list].as_array().map_or(&[][..], Vec::as_slice);
        if spec.list(list).len() != before.len() {
            let why = format!("{list} may not be added or removed on resize");
            causes.push(spec.child(list).forbidden(&why));
            continue;
        }
        for (container, before) in spec.items(list).zip(before) {
            if container.value["name"] != before["name"] {
                let why = format!("{list} may not be renamed or reordered on resize");
                causes.push(container.child("name").forbidden(&why));
                continue;
            }
            let resources = container.child("resources");
            for (part, why) in [
                ("requests", "resource requests cannot be removed"),
                ("limits", "resource limits cannot be removed"),
            ] {
                let had = before["resources"][part].as_object().into_iter().flatten();
                if had
                    .into_iter()
                    .any(|(name, _)| resources.value[part].get(name).is_none())
                {
                    causes.push(resources.child(part).forbidden(why));
                }
            }
            if others(&resources.value["requests"]) != others(&before["resources"]["requests"])
                || others(&resources.value["limits"]) != others(&before["resources"]["limits"])
            {
                causes.push(spec.forbidden("only cpu and memory resources are mutable"));
            }
        }
    }
}

/// What of a list of resources is neither cpu nor memory.
fn others(list: &Value) -> Vec<(&String, &Value)> {
    let map = list.as_object().into_iter().flatten();
    map.filter(|(name, _)| !matches!(name.as_str(), "cpu" | "memory"))
        .collect()
}
