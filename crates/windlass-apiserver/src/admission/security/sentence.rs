//! How violations are told.

use std::collections::BTreeSet;

use serde_json::Value;

/// `"a", "b"`.
pub(super) fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items
        .into_iter()
        .map(|item| format!("\"{item}\""))
        .collect();
    items.join(", ")
}

/// The word for one, or for several.
pub(super) fn plural<'a>(one: &'a str, several: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { several }
}

/// `container "a"`, `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    let word = plural("container", "containers", names.len());
    format!("{word} {}", quoted(names.iter().copied()))
}

/// `pod and container "a"`: who set something.
pub(super) fn setters(pod: bool, names: &[&str]) -> String {
    match (pod, names) {
        (true, []) => "pod".to_owned(),
        (true, names) => format!("pod and {}", containers(names)),
        (false, names) => containers(names),
    }
}

/// The containers of a pod of every sort, first those that come first.
pub(super) fn all_containers(spec: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .filter_map(|list| spec[list].as_array())
        .flatten()
}

pub(super) fn name(container: &Value) -> &str {
    container["name"].as_str().unwrap_or_default()
}

/// The names of containers for which something holds.
pub(super) fn those(spec: &Value, bad: impl Fn(&Value) -> bool) -> Vec<&str> {
    all_containers(spec)
        .filter(|container| bad(container))
        .map(name)
        .collect()
}

/// Containers that set something to a forbidden value, and these values.
pub(super) fn values<'a, I: IntoIterator<Item = String>>(
    spec: &'a Value,
    forbidden: impl Fn(&'a Value) -> I,
) -> (Vec<&'a str>, BTreeSet<String>) {
    let (mut bad, mut found) = (Vec::new(), BTreeSet::new());
    for container in all_containers(spec) {
        let before = bad.len();
        for value in forbidden(container) {
            found.insert(value);
            if bad.len() == before {
                bad.push(name(container));
            }
        }
    }
    (bad, found)
}
