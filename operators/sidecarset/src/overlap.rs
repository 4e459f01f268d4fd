//! Whether two selectors can match the same labels.
//!
//! Requirements on different labels never contradict each other. So each label is looked at by
//! itself: whether there is a value, or none, that satisfies every requirement on it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use windlass::object;

use crate::kind::SidecarSetSpec;

/// Not a valid label value: for any value that no requirement names.
const OTHER: &str = "*";

/// What a selector requires; a label is a requirement with one value.
fn requirements(selector: &LabelSelector) -> impl Iterator<Item = LabelSelectorRequirement> {
    let labels = selector.match_labels.iter().flatten().map(|(key, value)| {
        object!(LabelSelectorRequirement {
            key: key,
            operator: "In",
            values: [value]
        })
    });
    labels.chain(selector.match_expressions.iter().flatten().cloned())
}

/// Whether a label may have this value, or be absent.
fn allows(requirement: &LabelSelectorRequirement, value: Option<&str>) -> bool {
    let named = |value: &str| requirement.values.iter().flatten().any(|one| one == value);
    match requirement.operator.as_str() {
        "In" => value.is_some_and(named),
        "NotIn" => !value.is_some_and(named),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => true,
    }
}

/// Whether there are labels that all selectors match.
fn can_all_match<'a>(selectors: impl Iterator<Item = &'a LabelSelector>) -> bool {
    let all: Vec<LabelSelectorRequirement> = selectors.flat_map(requirements).collect();
    all.iter().all(|one| {
        let same_label = || all.iter().filter(|other| other.key == one.key);
        let named = same_label().flat_map(|other| other.values.iter().flatten());
        let mut values = named
            .map(|value| Some(value.as_str()))
            .chain([Some(OTHER), None]);
        values.any(|value| same_label().all(|other| allows(other, value)))
    })
}

/// Whether a pod can be selected by both sets.
pub(crate) fn overlap(one: &SidecarSetSpec, other: &SidecarSetSpec) -> bool {
    let namespaces = one.namespace.as_ref().zip(other.namespace.as_ref());
    namespaces.is_none_or(|(one, other)| one == other)
        && can_all_match(
            one.namespace_selector
                .iter()
                .chain(&other.namespace_selector),
        )
        && can_all_match(one.selector.iter().chain(&other.selector))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn selector(value: Value) -> LabelSelector {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn selectors_overlap_unless_a_label_contradicts() {
        let app = |value: &str| json!({ "matchLabels": { "app": value } });
        let asks = |operator: &str, values: &[&str]| json!({ "matchExpressions": [{ "key": "app", "operator": operator, "values": values }] });
        let cases = [
            (app("a"), app("a"), true),
            (app("a"), app("b"), false),
            (app("a"), json!({ "matchLabels": { "tier": "b" } }), true),
            (app("a"), asks("In", &["a", "b"]), true),
            (app("a"), asks("In", &["b", "c"]), false),
            (app("a"), asks("NotIn", &["a"]), false),
            (app("a"), asks("NotIn", &["b"]), true),
            (app("a"), asks("Exists", &[]), true),
            (app("a"), asks("DoesNotExist", &[]), false),
            (asks("NotIn", &["a"]), asks("DoesNotExist", &[]), true),
            (asks("In", &["a", "b"]), asks("In", &["b", "c"]), true),
        ];
        for (one, other, expected) in cases {
            let (a, b) = (selector(one.clone()), selector(other.clone()));
            assert_eq!(
                can_all_match([&a, &b].into_iter()),
                expected,
                "{one} {other}"
            );
            assert_eq!(
                can_all_match([&b, &a].into_iter()),
                expected,
                "{other} {one}"
            );
        }
    }
}
