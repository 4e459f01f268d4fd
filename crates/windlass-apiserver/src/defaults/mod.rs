//! Defaults of built-in kinds.
//!
//! `facts/defaults.json` names, per type, the fields that get a value when they are absent;
//! `field?other=value` asks that a sibling have a value first. The few defaults that follow from
//! other fields are functions here. What is left then and is on the wire anyway (a Go struct
//! without `omitempty`) gets its zero value, from `facts/zeros.json`.

mod derived;
mod omitted;

use std::collections::HashMap;

use serde_json::{Map, Value};

pub(crate) use derived::{TEMPLATE_GENERATION, drop_template_generation, load_balancer_mode};
pub(crate) use omitted::{drop_zeros, table as omitted_table};

use crate::registry::facts::Definition;
use crate::registry::types::{Scalar, Type};
use crate::steps::step;

#[derive(Clone, Debug)]
pub(crate) struct Default {
    field: String,
    /// A sibling and the value it must have.
    when: Option<(String, String)>,
    value: Value,
}

/// What gets a value, by the names of types.
pub(crate) fn table() -> HashMap<String, Vec<Default>> {
    let raw: HashMap<String, Map<String, Value>> =
        serde_json::from_str(include_str!("../../facts/defaults.json"))
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
}

/// Fills in the defaults of `value`, an object of type `ty`, all the way down.
pub(crate) fn fill(value: &mut Value, ty: &Type) {
    step();
    if ty.is_unknown() {
        return;
    }
    match value {
        Value::Object(map) => {
            if let (Some(name), Some(known)) = (ty.name(), ty.definition()) {
                fill_type(map, name, known);
                for (field, zero) in &known.zeros {
                    if !map.contains_key(field) {
                        map.insert(field.clone(), zero.clone());
                    }
                }
            }
            if let Type::Struct { fields, .. } = ty.resolve() {
                for (name, field) in fields {
                    if let (Some(default), false) = (&field.default, map.contains_key(name)) {
                        map.insert(name.clone(), default.clone());
                    }
                }
            }
            if let Type::Map { value, .. } = ty.resolve()
                && matches!(value.resolve(), Type::Scalar(Scalar::Quantity))
            {
                derived::round_up(map);
            }
            for (key, value) in map.iter_mut() {
                fill(value, ty.member(key));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, ty.item())),
        _ => {}
    }
}

/// An object of type `ty` in which nobody set anything: what a create is compared with.
pub(crate) fn zero(ty: &Type) -> Value {
    let mut object = Map::new();
    for (field, value) in ty.zeros().into_iter().flatten() {
        let value = if value.is_object() {
            zero(ty.member(field))
        } else {
            value.clone()
        };
        object.insert(field.clone(), value);
    }
    Value::Object(object)
}

/// Fields that are shown empty to who left nothing in them; what is stored is never so.
const SHOWN_EMPTY: &[(&str, &str)] = &[
    ("DeviceClaim", "requests"),
    ("PersistentVolumeSpec", "capacity"),
    ("PodFailurePolicy", "rules"),
];

/// Whether a refusal tells an empty list or map of a type from none.
pub(crate) fn is_shown_empty(structure: &str, field: &str) -> bool {
    SHOWN_EMPTY.contains(&(structure, field))
}

/// Drops the empty lists and maps that a Go struct does not write, but for those that a refusal
/// may show: see `decode`.
pub(crate) fn drop_empties(value: &mut Value, ty: &Type) {
    drop_empties_but(value, ty, is_shown_empty);
}

/// Drops those, too, once nobody refuses.
pub(crate) fn drop_shown_empties(value: &mut Value, ty: &Type) {
    drop_empties_but(value, ty, |_, _| false);
    settle_but(value, ty, |_, _| false);
}

fn drop_empties_but(value: &mut Value, ty: &Type, kept: fn(&str, &str) -> bool) {
    step();
    if ty.is_unknown() {
        return;
    }
    match value {
        Value::Object(map) => {
            let zeros = ty.zeros();
            let structure = ty.name().and_then(|name| name.rsplit('.').next());
            let structure = structure.unwrap_or_default();
            if let Type::Struct { fields, .. } = ty.resolve() {
                map.retain(|name, value| {
                    let empty = match fields.get(name).map(|field| field.ty.resolve()) {
                        Some(Type::List { .. }) => value.as_array().is_some_and(Vec::is_empty),
                        Some(Type::Map { .. }) => value.as_object().is_some_and(Map::is_empty),
                        _ => false,
                    };
                    !empty
                        || kept(structure, name)
                        || zeros.is_some_and(|zeros| zeros.contains_key(name))
                });
            }
            for (key, value) in map.iter_mut() {
                drop_empties_but(value, ty.member(key), kept);
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| drop_empties_but(item, ty.item(), kept)),
        _ => {}
    }
}

/// Makes null of every empty list that is on the wire anyway: what is stored cannot tell them apart.
pub(crate) fn settle(value: &mut Value, ty: &Type) {
    settle_but(value, ty, is_shown_empty);
}

fn settle_but(value: &mut Value, ty: &Type, kept: fn(&str, &str) -> bool) {
    step();
    if ty.is_unknown() {
        return;
    }
    match value {
        Value::Object(map) => {
            if let Some(name) = ty.name() {
                let structure = name.rsplit('.').next().unwrap_or_default();
                for field in ty.zeros().into_iter().flat_map(Map::keys) {
                    if let Some(value @ Value::Array(_)) = map.get_mut(field)
                        && value.as_array().is_some_and(Vec::is_empty)
                        && !kept(structure, field)
                    {
                        *value = Value::Null;
                    }
                }
            }
            for (key, value) in map.iter_mut() {
                settle_but(value, ty.member(key), kept);
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| settle_but(item, ty.item(), kept)),
        _ => {}
    }
}

fn fill_type(map: &mut Map<String, Value>, ty: &str, known: &Definition) {
    for default in &known.defaults {
        let wanted = default
            .when
            .as_ref()
            .is_none_or(|(sibling, value)| map.get(sibling).is_some_and(|found| found == value));
        // Behind no pointer a zero is what nobody set.
        let zero = known.zeros.get(&default.field);
        let unset = match map.get(&default.field) {
            None => true,
            Some(value) => (value.is_number() || value.is_string()) && Some(value) == zero,
        };
        if wanted && unset {
            map.insert(default.field.clone(), default.value.clone());
        }
    }
    match ty.strip_prefix("io.k8s.api.").unwrap_or_default() {
        "apps.v1.DaemonSet" => derived::template_generation(map),
        "apps.v1.StatefulSetSpec" => derived::claim_templates(map),
        "apps.v1.StatefulSetUpdateStrategy" => derived::stateful_set_strategy(map),
        "batch.v1.Job" => derived::job(map),
        "core.v1.PersistentVolume" => derived::persistent_volume(map),
        "core.v1.PodStatus" => derived::pod_addresses(map),
        "core.v1.Container" | "core.v1.EphemeralContainer" => derived::pull_policy(map),
        "core.v1.LimitRangeItem" => derived::limit_range_item(map),
        "core.v1.Namespace" => derived::namespace_label(map),
        "core.v1.Pod" => derived::pod(map),
        "core.v1.PodSpec" => derived::service_account(map),
        "core.v1.ReplicationController" => derived::selector_from_template(map),
        "core.v1.Secret" => derived::string_data(map),
        "core.v1.ServicePort" => derived::target_port(map),
        "core.v1.ServiceSpec" => derived::service(map),
        "core.v1.Volume" => derived::volume(map),
        "core.v1.NodeSpec" => derived::node_ranges(map),
        "core.v1.NodeStatus" => derived::allocatable(map),
        "autoscaling.v2.HorizontalPodAutoscalerBehavior" => derived::scaling(map),
        "networking.v1.NetworkPolicySpec" => derived::policy_types(map),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_type_and_field_of_the_table_exists() {
        for (name, defaults) in table() {
            let ty = Type::Named(name.as_str().into());
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
    fn an_object_nobody_touched_has_what_is_always_on_the_wire() {
        let deployment = zero(&Type::Named("io.k8s.api.apps.v1.Deployment".into()));
        assert_eq!(deployment["spec"]["strategy"], json!({}));
        assert_eq!(
            deployment["spec"]["template"]["spec"],
            json!({"containers": null})
        );
        assert!(deployment["spec"].get("replicas").is_none());
    }

    #[test]
    fn only_pods_get_requests_from_limits() {
        let spec = json!({"containers": [{"name": "c", "image": "x", "resources": {"limits": {"cpu": "1"}}}]});
        let mut pod = json!({"spec": spec});
        fill(&mut pod, &Type::Named("io.k8s.api.core.v1.Pod".into()));
        let mut template = json!({"spec": spec});
        fill(
            &mut template,
            &Type::Named("io.k8s.api.core.v1.PodTemplateSpec".into()),
        );
        let requests = |object: &Value| {
            object["spec"]["containers"][0]["resources"]
                .get("requests")
                .cloned()
        };
        assert_eq!(requests(&pod), Some(json!({"cpu": "1"})));
        assert_eq!(requests(&template), None);
    }

    #[test]
    fn a_recreate_strategy_gets_no_rolling_update() {
        let ty = Type::Named("io.k8s.api.apps.v1.DeploymentStrategy".into());
        let mut strategy = json!({"type": "Recreate"});
        fill(&mut strategy, &ty);
        assert_eq!(strategy, json!({"type": "Recreate"}));
    }
}
