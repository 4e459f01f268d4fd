//! `AppArmor` profiles that are named in the way of old, by annotations of the pod.

use serde_json::{Value, json};

const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Sets the field that each annotation stands for where there is none; what the client is told
/// comes back.
pub(crate) fn adopt(pod: &mut Value) -> Vec<String> {
    if pod["spec"]["os"]["name"] == "windows" {
        return Vec::new();
    }
    let Some(annotations) = pod["metadata"]["annotations"].as_object().cloned() else {
        return Vec::new();
    };
    let of_pod = pod["spec"]["securityContext"]["appArmorProfile"].clone();
    let mut told = Vec::new();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default();
            let key = format!("{PREFIX}{name}");
            let Some(annotation) = annotations.get(&key).and_then(Value::as_str) else {
                continue;
            };
            if container["securityContext"]
                .get("appArmorProfile")
                .is_some()
            {
                continue;
            }
            match profile(annotation) {
                Some(profile) if profile == of_pod => continue,
                Some(profile) => {
                    if !container["securityContext"].is_object() {
                        container["securityContext"] = json!({});
                    }
                    container["securityContext"]["appArmorProfile"] = profile;
                }
                None => {}
            }
            told.push(deprecated(&format!("metadata.annotations[{key}]")));
        }
    }
    told
}

fn deprecated(place: &str) -> String {
    format!("{place}: deprecated since v1.30; use the \"appArmorProfile\" field instead")
}

/// The profile that an annotation stands for, if it is one.
fn profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => {
            let path = annotation.strip_prefix("localhost/")?;
            let fits = !path.is_empty() && path.trim() == path && path.len() <= 4095;
            fits.then(|| json!({"type": "Localhost", "localhostProfile": path}))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_becomes_a_field_where_there_is_none() {
        let mut pod = json!({
            "metadata": {"annotations": {
                format!("{PREFIX}a"): "localhost/x", format!("{PREFIX}b"): "odd",
                format!("{PREFIX}c"): "unconfined", format!("{PREFIX}d"): "runtime/default",
            }},
            "spec": {
                "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}},
                "containers": [
                    {"name": "a"}, {"name": "b"}, {"name": "d"},
                    {"name": "c", "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}},
                ],
            },
        });
        let told = adopt(&mut pod);
        assert_eq!(told.len(), 2, "{told:?}");
        let containers = &pod["spec"]["containers"];
        let profile = json!({"type": "Localhost", "localhostProfile": "x"});
        assert_eq!(containers[0]["securityContext"]["appArmorProfile"], profile);
        assert_eq!(containers[1].get("securityContext"), None);
        assert_eq!(containers[2].get("securityContext"), None);
        let kept = json!({"type": "RuntimeDefault"});
        assert_eq!(containers[3]["securityContext"]["appArmorProfile"], kept);
    }
}
