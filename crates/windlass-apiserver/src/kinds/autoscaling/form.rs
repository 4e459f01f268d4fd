//! autoscaling/v1 and autoscaling/v2 autoscalers: one store, in version 2. What version 1 has no
//! fields for is told in annotations, as JSON in the order of Go's fields.

use serde_json::{Map, Value, json};

use crate::object::meta_mut;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// A field of a metric: its name in version 1 and its path in version 2. `!` marks one that is
/// written even when it is absent.
type Spelling = (&'static str, &'static str);

/// Sources of metrics, what they want, and what they have.
const SOURCES: &[(&str, &[Spelling], &[Spelling])] = &[
    (
        "object",
        &[
            ("target!", "describedObject"),
            ("metricName!", "metric.name"),
            ("targetValue!0", "target.value"),
            ("selector", "metric.selector"),
            ("averageValue", "target.averageValue"),
        ],
        &[
            ("target!", "describedObject"),
            ("metricName!", "metric.name"),
            ("currentValue!0", "current.value"),
            ("selector", "metric.selector"),
            ("averageValue", "current.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName!", "metric.name"),
            ("targetAverageValue!0", "target.averageValue"),
            ("selector", "metric.selector"),
        ],
        &[
            ("metricName!", "metric.name"),
            ("currentAverageValue!0", "current.averageValue"),
            ("selector", "metric.selector"),
        ],
    ),
    (
        "resource",
        &[
            ("name!", "name"),
            ("targetAverageUtilization", "target.averageUtilization"),
            ("targetAverageValue", "target.averageValue"),
        ],
        &[
            ("name!", "name"),
            ("currentAverageUtilization", "current.averageUtilization"),
            ("currentAverageValue!0", "current.averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name!", "name"),
            ("targetAverageUtilization", "target.averageUtilization"),
            ("targetAverageValue", "target.averageValue"),
            ("container!", "container"),
        ],
        &[
            ("name!", "name"),
            ("currentAverageUtilization", "current.averageUtilization"),
            ("currentAverageValue!0", "current.averageValue"),
            ("container!", "container"),
        ],
    ),
    (
        "external",
        &[
            ("metricName!", "metric.name"),
            ("metricSelector", "metric.selector"),
            ("targetValue", "target.value"),
            ("targetAverageValue", "target.averageValue"),
        ],
        &[
            ("metricName!", "metric.name"),
            ("metricSelector", "metric.selector"),
            ("currentValue!0", "current.value"),
            ("currentAverageValue", "current.averageValue"),
        ],
    ),
];

/// A JSON object with its members in order.
fn ordered(members: &[(&str, Option<String>)]) -> String {
    let members: Vec<String> = members
        .iter()
        .filter_map(|(name, value)| Some(format!("\"{name}\":{}", value.as_ref()?)))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let found = path
        .split('.')
        .try_fold(value, |value, part| value.get(part))?;
    Some(found).filter(|found| !found.is_null())
}

/// The metric that version 1 has a field for: how busy the processors are.
fn is_cpu_share(metric: &Value, part: &str) -> bool {
    metric["type"] == "Resource"
        && metric["resource"]["name"] == "cpu"
        && at(metric, &format!("resource.{part}.averageUtilization")).is_some()
}

/// A metric of version 2 as the JSON that version 1 has for it.
fn old_metric(metric: &Value, current: bool) -> String {
    let mut members = vec![("type", Some(metric["type"].to_string()))];
    for (name, wanted, had) in SOURCES {
        let Some(source) = metric.get(*name) else {
            continue;
        };
        let spelling = if current { had } else { wanted };
        let fields: Vec<(&str, Option<String>)> = spelling
            .iter()
            .map(|(old, path)| {
                let (old, zero) = old.split_once('!').map_or((*old, None), |(old, zero)| {
                    (old, Some(if zero == "0" { "\"0\"" } else { "\"\"" }))
                });
                let shown = at(source, path).map(|value| match old {
                    "target" => reference(value),
                    _ => value.to_string(),
                });
                (old, shown.or_else(|| zero.map(str::to_owned)))
            })
            .collect();
        members.push((name, Some(ordered(&fields))));
    }
    ordered(&members)
}

fn reference(value: &Value) -> String {
    let text = |field: &str| value.get(field).map(Value::to_string);
    ordered(&[
        ("kind", text("kind")),
        ("name", text("name")),
        ("apiVersion", text("apiVersion")),
    ])
}

/// A metric as version 1 has it, in the form of version 2.
fn new_metric(old: &Value, current: bool) -> Value {
    let mut metric = json!({"type": old["type"]});
    for (name, wanted, had) in SOURCES {
        let Some(source) = old.get(*name) else {
            continue;
        };
        let mut made = json!({});
        for (old_name, path) in if current { *had } else { *wanted } {
            let old_name = old_name.split('!').next().unwrap_or_default();
            if let Some(value) = at(source, old_name) {
                let empty = old_name == "targetValue" && *value == "0";
                if !empty {
                    crate::object::set_at(&mut made, path, value.clone());
                }
            }
        }
        if !current {
            let target = &made["target"];
            let kind = if target.get("averageUtilization").is_some() {
                "Utilization"
            } else if target.get("averageValue").is_some() {
                "AverageValue"
            } else {
                "Value"
            };
            made["target"]["type"] = kind.into();
        }
        metric[*name] = made;
    }
    metric
}

/// How to scale, under the names of Go's fields.
fn old_behavior(behavior: &Value) -> String {
    let rules = |direction: &str| {
        let Some(rules) = behavior.get(direction) else {
            return "null".to_owned();
        };
        let or_null = |value: &Value, field: &str| Some(value[field].to_string());
        let policies = rules["policies"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|policy| {
                ordered(&[
                    ("Type", or_null(policy, "type")),
                    ("Value", or_null(policy, "value")),
                    ("PeriodSeconds", or_null(policy, "periodSeconds")),
                ])
            });
        ordered(&[
            (
                "StabilizationWindowSeconds",
                or_null(rules, "stabilizationWindowSeconds"),
            ),
            ("SelectPolicy", or_null(rules, "selectPolicy")),
            ("Policies", Some(list(policies))),
            ("Tolerance", or_null(rules, "tolerance")),
        ])
    };
    ordered(&[
        ("ScaleUp", Some(rules("scaleUp"))),
        ("ScaleDown", Some(rules("scaleDown"))),
    ])
}

/// A tree whose names begin with a small letter, without what is null.
fn lowered(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| {
                let first = name.chars().next().map(|c| c.to_ascii_lowercase());
                let name: String = first.into_iter().chain(name.chars().skip(1)).collect();
                (name, lowered(value))
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(lowered).collect(),
        other => other.clone(),
    }
}

fn old_condition(condition: &Value) -> String {
    let text = |field: &str| condition.get(field).map(Value::to_string);
    ordered(&[
        ("type", text("type")),
        ("status", text("status")),
        (
            "lastTransitionTime",
            text("lastTransitionTime").or(Some("null".into())),
        ),
        ("reason", text("reason")),
        ("message", text("message")),
    ])
}

fn annotation(autoscaler: &mut Value, name: &str, value: String) {
    let annotations = meta_mut(autoscaler)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    annotations[name] = value.into();
}

fn take_annotation(autoscaler: &mut Value, name: &str) -> Option<Value> {
    let metadata = meta_mut(autoscaler);
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(name)?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    serde_json::from_str(text.as_str()?).ok()
}

fn take(value: &mut Value, part: &str, field: &str) -> Option<Value> {
    value.get_mut(part)?.as_object_mut()?.remove(field)
}

/// Turns an autoscaler of version 2 into one of version 1.
pub(crate) fn to_old(autoscaler: &mut Value) {
    let metrics = take(autoscaler, "spec", "metrics");
    let metrics = metrics
        .as_ref()
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    if let Some(cpu) = metrics
        .iter()
        .rfind(|metric| is_cpu_share(metric, "target"))
    {
        autoscaler["spec"]["targetCPUUtilizationPercentage"] =
            cpu["resource"]["target"]["averageUtilization"].clone();
    }
    let others: Vec<&Value> = metrics
        .iter()
        .filter(|metric| !is_cpu_share(metric, "target"))
        .collect();
    if !others.is_empty() {
        let text = list(others.into_iter().map(|metric| old_metric(metric, false)));
        annotation(autoscaler, METRICS, text);
    }
    if let Some(behavior) = take(autoscaler, "spec", "behavior") {
        annotation(autoscaler, BEHAVIOR, old_behavior(&behavior));
    }
    if let Some(Value::Array(current)) = take(autoscaler, "status", "currentMetrics") {
        if let Some(cpu) = current
            .iter()
            .rfind(|metric| is_cpu_share(metric, "current"))
        {
            autoscaler["status"]["currentCPUUtilizationPercentage"] =
                cpu["resource"]["current"]["averageUtilization"].clone();
        }
        let text = list(current.iter().map(|metric| old_metric(metric, true)));
        annotation(autoscaler, CURRENT_METRICS, text);
    }
    if let Some(Value::Array(conditions)) = take(autoscaler, "status", "conditions") {
        let text = list(conditions.iter().map(old_condition));
        annotation(autoscaler, CONDITIONS, text);
    }
    if let Some(status) = autoscaler.get_mut("status").and_then(Value::as_object_mut) {
        status.entry("currentReplicas").or_insert(0.into());
    }
    autoscaler["apiVersion"] = "autoscaling/v1".into();
}

/// Turns an autoscaler of version 1 into one of version 2.
pub(crate) fn to_new(autoscaler: &mut Value) {
    let items = |value: Option<Value>| match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    let others = items(take_annotation(autoscaler, METRICS));
    let mut metrics: Vec<Value> = others
        .iter()
        .map(|metric| new_metric(metric, false))
        .collect();
    if let Some(share) = take(autoscaler, "spec", "targetCPUUtilizationPercentage") {
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": share}}}));
    }
    if !metrics.is_empty() {
        autoscaler["spec"]["metrics"] = metrics.into();
    }
    if let Some(behavior) = take_annotation(autoscaler, BEHAVIOR) {
        autoscaler["spec"]["behavior"] = lowered(&behavior);
    }
    let current = items(take_annotation(autoscaler, CURRENT_METRICS));
    if !current.is_empty() {
        autoscaler["status"]["currentMetrics"] = current
            .iter()
            .map(|metric| new_metric(metric, true))
            .collect();
    }
    let conditions = items(take_annotation(autoscaler, CONDITIONS));
    if !conditions.is_empty() {
        autoscaler["status"]["conditions"] = conditions.into();
    }
    take(autoscaler, "status", "currentCPUUtilizationPercentage");
    let replicas = autoscaler.get_mut("status").and_then(Value::as_object_mut);
    if let Some(status) = replicas {
        if status.get("currentReplicas") == Some(&json!(0)) {
            status.remove("currentReplicas");
        }
        status.entry("currentMetrics").or_insert(Value::Null);
    }
    autoscaler["apiVersion"] = "autoscaling/v2".into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_version_one_has_no_fields_for_survives_it() {
        let new = json!({
            "apiVersion": "autoscaling/v2",
            "metadata": {"name": "a"},
            "spec": {
                "maxReplicas": 3,
                "metrics": [
                    {"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
                ],
                "behavior": {"scaleDown": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}},
            },
        });
        let mut autoscaler = new.clone();
        to_old(&mut autoscaler);
        assert_eq!(autoscaler["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(
            autoscaler["metadata"]["annotations"][METRICS],
            r#"[{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"1"}}]"#
        );
        to_new(&mut autoscaler);
        assert_eq!(autoscaler, new);
    }
}
