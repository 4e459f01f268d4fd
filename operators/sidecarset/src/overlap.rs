//! Whether two selectors can match the same labels.
//!
//! Requirements about different labels never contradict each other. So each label is looked at by
//! itself: which values it may have by both selectors, and whether it may be absent.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::kind::SidecarSetSpec;

/// What is asked of one label.
#[derive(Default)]
struct Wanted {
    /// One of these, if told.
    within: Option<BTreeSet<String>>,
    without: BTreeSet<String>,
    present: bool,
    absent: bool,
}

impl Wanted {
    fn within(&mut self, values: BTreeSet<String>) {
        self.present = true;
        self.within = Some(match self.within.take() {
            Some(known) => known.intersection(&values).cloned().collect(),
            None => values,
        });
    }

    fn is_possible(&self) -> bool {
        let value = self
            .within
            .as_ref()
            .is_none_or(|within| within.difference(&self.without).next().is_some());
        value && !(self.present && self.absent)
    }
}

/// Whether there are labels that both match.
fn can_both_match(one: &LabelSelector, other: &LabelSelector) -> bool {
    let mut labels: BTreeMap<String, Wanted> = BTreeMap::new();
    for selector in [one, other] {
        for (key, value) in selector.match_labels.iter().flatten() {
            let wanted = labels.entry(key.clone()).or_default();
            wanted.within([value.clone()].into());
        }
        for requirement in selector.match_expressions.iter().flatten() {
            let wanted = labels.entry(requirement.key.clone()).or_default();
            let values = requirement.values.iter().flatten().cloned().collect();
            match requirement.operator.as_str() {
                "In" => wanted.within(values),
                "NotIn" => wanted.without.extend(values),
                "Exists" => wanted.present = true,
                "DoesNotExist" => wanted.absent = true,
                _ => {}
            }
        }
    }
    labels.values().all(Wanted::is_possible)
}

/// Whether a pod can be selected by both sets.
pub(crate) fn overlap(one: &SidecarSetSpec, other: &SidecarSetSpec) -> bool {
    let namespaces = match (&one.namespace, &other.namespace) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    let both = |one: Option<&LabelSelector>, other: Option<&LabelSelector>| match (one, other) {
        (Some(one), Some(other)) => can_both_match(one, other),
        _ => true,
    };
    namespaces
        && both(
            one.namespace_selector.as_ref(),
            other.namespace_selector.as_ref(),
        )
        && both(one.selector.as_ref(), other.selector.as_ref())
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
            assert_eq!(can_both_match(&a, &b), expected, "{one} {other}");
            assert_eq!(can_both_match(&b, &a), expected, "{other} {one}");
        }
    }
}
