//! What a path of its own may change of a pod: that part, and nothing else.

use serde_json::Value;

use super::set_meta;

/// Takes from `new` what the path is for, and everything else from `old`.
pub(super) fn keep_all_but_part(new: &mut Value, old: &Value, subresource: &str) {
    let mut kept = old.clone();
    if subresource == "ephemeralcontainers" {
        if let Some(spec) = kept["spec"].as_object_mut() {
            match new["spec"].get("ephemeralContainers") {
                Some(list) => spec.insert("ephemeralContainers".into(), list.clone()),
                None => spec.remove("ephemeralContainers"),
            };
        }
    } else {
        for part in ["containers", "initContainers"] {
            take_resources(&mut kept, new, part);
        }
    }
    for field in ["managedFields", "resourceVersion"] {
        set_meta(&mut kept, field, new["metadata"].get(field).cloned());
    }
    *new = kept;
}

/// A container is known by its place.
fn take_resources(kept: &mut Value, new: &Value, part: &str) {
    let wanted = new["spec"][part].as_array().cloned().unwrap_or_default();
    let own = kept["spec"].get_mut(part).and_then(Value::as_array_mut);
    for (own, wanted) in own.into_iter().flatten().zip(&wanted) {
        let Some(own) = own.as_object_mut() else {
            continue;
        };
        for field in ["resources", "resizePolicy"] {
            match wanted.get(field) {
                Some(value) => own.insert(field.into(), value.clone()),
                None => own.remove(field),
            };
        }
    }
}
