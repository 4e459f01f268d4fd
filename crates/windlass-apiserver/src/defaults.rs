//! Defaults of built-in kinds.
//!
//! `facts/defaults.json` names, per type, the fields that get a value when they are absent;
//! `field?other=value` asks that a sibling have a value first. The few defaults that follow from
//! other fields are functions here.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::types::Type;

struct Default {
    field: String,
    /// A sibling and the value it must have.
    when: Option<(String, String)>,
    value: Value,
}

static TABLE: LazyLock<HashMap<String, Vec<Default>>> = LazyLock::new(|| {
    let raw: HashMap<String, Map<String, Value>> =
        serde_json::from_str(include_str!("../facts/defaults.json"))
            .expect("facts/defaults.json is checked in and checked by tests: it parses");
    raw.into_iter()
        .map(|(ty, fields)| {
            let mut defaults: Vec<Default> = fields
                .into_iter()
                .map(|(key, value)| match key.split_once('?') {
                    None => Default {
                        field: key,
                        when: None,
                        value,
                    },
                    Some((field, condition)) => {
                        let (sibling, wanted) =
                            condition.split_once('=').unwrap_or((condition, ""));
                        Default {
                            field: field.into(),
                            when: Some((sibling.into(), wanted.into())),
                            value,
                        }
                    }
                })
                .collect();
            // What is unconditional decides the conditions of the rest.
            defaults.sort_by_key(|default| default.when.is_some());
            (ty, defaults)
        })
        .collect()
});

/// Fills in the defaults of `value`, an object of type `ty`, all the way down.
pub(crate) fn fill(value: &mut Value, ty: &Type) {
    match value {
        Value::Object(map) => {
            if let Type::Named(name) = ty {
                fill_type(map, name);
            }
            if let Type::Struct { fields, .. } = ty.resolve() {
                for (name, field) in fields {
                    if let (Some(default), false) = (&field.default, map.contains_key(name)) {
                        map.insert(name.clone(), default.clone());
                    }
                }
            }
            for (key, value) in map.iter_mut() {
                fill(value, ty.member(key));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, ty.item())),
        _ => {}
    }
}

fn fill_type(map: &mut Map<String, Value>, ty: &str) {
    for default in TABLE.get(ty).into_iter().flatten() {
        let wanted = default
            .when
            .as_ref()
            .is_none_or(|(sibling, value)| map.get(sibling).is_some_and(|found| found == value));
        if wanted && !map.contains_key(&default.field) {
            map.insert(default.field.clone(), default.value.clone());
        }
    }
    match ty.strip_prefix("io.k8s.api.").unwrap_or_default() {
        "core.v1.Container" => pull_policy(map),
        "core.v1.ServicePort" => target_port(map),
        "core.v1.Secret" => string_data(map),
        "core.v1.ResourceRequirements" => requests_from_limits(map),
        "core.v1.PodSpec" => service_account(map),
        _ => {}
    }
}

/// The moving tag is always pulled.
fn pull_policy(container: &mut Map<String, Value>) {
    if container.contains_key("imagePullPolicy") {
        return;
    }
    let image = container
        .get("image")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or_default();
    let moving =
        !image.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    container.insert(
        "imagePullPolicy".into(),
        if moving { "Always" } else { "IfNotPresent" }.into(),
    );
}

fn target_port(port: &mut Map<String, Value>) {
    if let (Some(number), false) = (port.get("port").cloned(), port.contains_key("targetPort")) {
        port.insert("targetPort".into(), number);
    }
}

/// `stringData` is written into `data` and not kept.
fn string_data(secret: &mut Map<String, Value>) {
    use base64::Engine as _;
    if let Some(Value::Object(plain)) = secret.remove("stringData") {
        let data = secret
            .entry("data")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(data) = data.as_object_mut() {
            for (key, value) in plain {
                let encoded = base64::engine::general_purpose::STANDARD
                    .encode(value.as_str().unwrap_or_default());
                data.insert(key, encoded.into());
            }
        }
    }
}

fn requests_from_limits(resources: &mut Map<String, Value>) {
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
        return;
    };
    let requests = resources
        .entry("requests")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(requests) = requests.as_object_mut() {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
}

/// The deprecated name of the same field follows it.
fn service_account(spec: &mut Map<String, Value>) {
    match (
        spec.get("serviceAccountName").cloned(),
        spec.get("serviceAccount").cloned(),
    ) {
        (Some(name), None) => spec.insert("serviceAccount".into(), name),
        (None, Some(name)) => spec.insert("serviceAccountName".into(), name),
        _ => None,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_type_and_field_of_the_table_exists() {
        for (name, defaults) in TABLE.iter() {
            let ty = Type::Named(name.clone());
            for default in defaults {
                assert!(
                    ty.field(&default.field).is_some(),
                    "{name} has no field {}",
                    default.field
                );
            }
        }
    }

    #[test]
    fn the_pull_policy_follows_the_tag() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1", "IfNotPresent"),
            ("r:5000/nginx", "Always"),
            ("x@sha256:0", "IfNotPresent"),
        ] {
            let mut container = json!({"name": "c", "image": image});
            fill(
                &mut container,
                &Type::Named("io.k8s.api.core.v1.Container".into()),
            );
            assert_eq!(container["imagePullPolicy"], policy, "{image}");
        }
    }

    #[test]
    fn a_recreate_strategy_gets_no_rolling_update() {
        let ty = Type::Named("io.k8s.api.apps.v1.DeploymentStrategy".into());
        let mut strategy = json!({"type": "Recreate"});
        fill(&mut strategy, &ty);
        assert_eq!(strategy, json!({"type": "Recreate"}));
    }
}
