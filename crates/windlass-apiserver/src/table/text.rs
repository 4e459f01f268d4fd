//! Lists, labels and selectors on one line.

use serde_json::Value;

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn or(value: String, nothing: &str) -> String {
    if value.is_empty() {
        nothing.to_owned()
    } else {
        value
    }
}

/// The first three of some, and how many more there are.
pub(crate) fn three(all: &[String]) -> String {
    let shown = all.iter().take(3).cloned().collect::<Vec<_>>().join(",");
    match all.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

/// Texts of a list, joined.
pub(crate) fn joined(list: &Value, by: &str) -> String {
    let list = list.as_array().into_iter().flatten();
    list.map(text).collect::<Vec<_>>().join(by)
}

pub(crate) fn labels(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    labels
        .map(|(key, value)| format!("{key}={}", text(value)))
        .collect::<Vec<_>>()
        .join(",")
}

/// A label selector, or that there is none.
pub(crate) fn selector(selector: &Value) -> String {
    or(requirements(selector), "<none>")
}

/// The requirements of a label selector by their keys, as Kubernetes writes them.
pub(crate) fn requirements(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", text(value))));
    }
    let expressions = selector["matchExpressions"].as_array();
    for expression in expressions.into_iter().flatten() {
        let key = text(&expression["key"]);
        let mut values: Vec<String> = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        values.sort();
        let values = values.join(",");
        let shown = match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.clone(),
        };
        parts.push((key, shown));
    }
    parts.sort_by(|(a, _), (b, _)| a.cmp(b));
    let parts: Vec<String> = parts.into_iter().map(|(_, shown)| shown).collect();
    parts.join(",")
}

/// Access modes in short.
pub(crate) fn modes(modes: &Value) -> String {
    let order = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| {
        modes
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == mode))
    };
    let shown: Vec<&str> = order
        .iter()
        .filter(|(mode, _)| has(mode))
        .map(|(_, short)| *short)
        .collect();
    shown.join(",")
}
