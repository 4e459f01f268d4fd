//! What an update may not change.

use serde_json::{Value, json};

use crate::resource::Resource;
use crate::status::{Cause, field};

const IMMUTABLE: &str = "field is immutable";
/// What of a `StatefulSet`'s spec may change.
const STATEFUL_SET: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// Everything that `new` changes and may not.
pub(crate) fn check(new: &Value, old: &Value, resource: &Resource) -> Vec<Cause> {
    if resource.is_custom() {
        return Vec::new();
    }
    let mut causes = Vec::new();
    let mut immutable = |path: &str| {
        let at = |object: &Value| {
            path.split('.')
                .fold(object.clone(), |value, part| value[part].clone())
        };
        if at(new) != at(old) {
            causes.push(field::invalid(path, &at(new), IMMUTABLE));
        }
    };
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "secrets") => {
            immutable("type");
            frozen_data(new, old, &mut causes);
        }
        ("", "configmaps") => frozen_data(new, old, &mut causes),
        ("", "pods") => pod(&new["spec"], &old["spec"], &mut causes),
        ("", "services") => service(&new["spec"], &old["spec"], &mut causes),
        ("apps", "daemonsets" | "deployments" | "replicasets") => immutable("spec.selector"),
        ("apps", "statefulsets") => stateful_set(&new["spec"], &old["spec"], &mut causes),
        ("batch", "jobs") => {
            immutable("spec.selector");
            immutable("spec.completionMode");
            immutable("spec.template");
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            role_ref(&new["roleRef"], &old["roleRef"], &mut causes);
        }
        _ => {}
    }
    causes
}

/// An immutable `ConfigMap` or Secret stays so, with all it holds.
fn frozen_data(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if old["immutable"] != true {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    if new["immutable"] != true {
        causes.push(field::forbidden("immutable", why));
    }
    for part in ["data", "binaryData"] {
        if new.get(part) != old.get(part) {
            causes.push(field::forbidden(part, why));
        }
    }
}

/// Of a pod's spec only images, deadlines and additional tolerations may change.
fn pod(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let count = |spec: &Value, list: &str| spec[list].as_array().map_or(0, Vec::len);
    if count(new, "containers") != count(old, "containers") {
        causes.push(field::forbidden(
            "spec.containers",
            "pod updates may not add or remove containers",
        ));
        return;
    }
    let tolerations = |spec: &Value| spec["tolerations"].as_array().cloned().unwrap_or_default();
    let kept = tolerations(new);
    if !tolerations(old)
        .iter()
        .all(|toleration| kept.contains(toleration))
    {
        causes.push(field::forbidden(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        ));
    }
    let fixed = |spec: &Value| {
        let mut spec = spec.clone();
        for list in ["containers", "initContainers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                container["image"] = Value::Null;
            }
        }
        for field in ["activeDeadlineSeconds", "tolerations"] {
            spec[field] = Value::Null;
        }
        if old["terminationGracePeriodSeconds"]
            .as_i64()
            .is_some_and(|old| old < 0)
        {
            spec["terminationGracePeriodSeconds"] = Value::Null;
        }
        spec
    };
    if fixed(new) != fixed(old) {
        causes.push(field::forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        ));
    }
}

/// A Service keeps the address it was given, unless it stops having one.
fn service(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let has_address = |spec: &Value| spec["type"] != "ExternalName";
    let address = |spec: &Value| spec["clusterIPs"][0].clone();
    if has_address(new)
        && has_address(old)
        && !old["clusterIP"].is_null()
        && address(new) != address(old)
    {
        causes.push(field::invalid(
            "spec.clusterIPs[0]",
            &new["clusterIPs"],
            "may not change once set",
        ));
    }
}

fn stateful_set(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let rest = |spec: &Value| {
        let mut spec = spec.as_object().cloned().unwrap_or_default();
        spec.retain(|field, _| !STATEFUL_SET.contains(&field.as_str()));
        spec
    };
    if rest(new) != rest(old) {
        causes.push(field::forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ));
    }
}

/// Shown under the names of the Go struct.
fn role_ref(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if new != old {
        let shown = json!({"APIGroup": new["apiGroup"], "Kind": new["kind"], "Name": new["name"]});
        causes.push(field::invalid("roleRef", &shown, "cannot change roleRef"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod_causes(new: &Value, old: &Value) -> usize {
        let mut causes = Vec::new();
        pod(new, old, &mut causes);
        causes.len()
    }

    #[test]
    fn a_pod_may_change_its_image_and_little_else() {
        let old =
            json!({"containers": [{"name": "c", "image": "1"}], "tolerations": [{"key": "a"}]});
        let with = |change: &dyn Fn(&mut Value)| {
            let mut new = old.clone();
            change(&mut new);
            new
        };
        let image = with(&|new| new["containers"][0]["image"] = "2".into());
        let tolerations = with(&|new| new["tolerations"] = json!([{"key": "a"}, {"key": "b"}]));
        assert_eq!(pod_causes(&image, &old), 0);
        assert_eq!(pod_causes(&tolerations, &old), 0);
        let command = with(&|new| new["containers"][0]["command"] = json!(["x"]));
        let fewer = with(&|new| new["tolerations"] = json!([]));
        let node = with(&|new| new["nodeName"] = "n".into());
        for refused in [command, fewer, node] {
            assert_eq!(pod_causes(&refused, &old), 1, "{refused}");
        }
    }
}
