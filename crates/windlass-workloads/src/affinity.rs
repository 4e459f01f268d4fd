//! Which nodes a pod may be on: its `nodeSelector` and its required node affinity.
//!
//! The terms of an affinity are alternatives, the requirements of a term all have to hold, and a
//! term without any matches nothing.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec,
};

/// Whether a node has what the pod's selector and required affinity ask for.
pub(crate) fn is_allowed(pod: &PodSpec, node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let selected = pod
        .node_selector
        .iter()
        .flatten()
        .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value));
    selected && required(pod).is_none_or(|selector| matches(selector, node))
}

/// The required node affinity of a pod.
pub(crate) fn required(pod: &PodSpec) -> Option<&NodeSelector> {
    let affinity = pod.affinity.as_ref()?.node_affinity.as_ref()?;
    affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()
}

/// Whether one of the selector's terms matches the node.
pub(crate) fn matches(selector: &NodeSelector, node: &Node) -> bool {
    selector
        .node_selector_terms
        .iter()
        .any(|term| term_matches(term, node))
}

/// Whether a term matches the node.
pub(crate) fn term_matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let empty = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&empty);
    let name = BTreeMap::from([(
        "metadata.name".to_owned(),
        node.metadata.name.clone().unwrap_or_default(),
    )]);
    expressions.iter().all(|one| holds(one, labels)) && fields.iter().all(|one| holds(one, &name))
}

fn holds(requirement: &NodeSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&requirement.key);
    let values = requirement.values.as_deref().unwrap_or_default();
    let number = |text: &String| text.parse::<i64>().ok();
    let compared = || value.and_then(number).zip(values.first().and_then(number));
    match requirement.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(|(has, than)| has > than),
        "Lt" => compared().is_some_and(|(has, than)| has < than),
        _ => false,
    }
}

/// The node that a required affinity names, if it names one.
pub(crate) fn named(pod: &PodSpec) -> Option<&str> {
    let terms = &required(pod)?.node_selector_terms;
    let mut fields = terms
        .iter()
        .flat_map(|term| term.match_fields.iter().flatten());
    let field = fields.find(|field| field.key == "metadata.name" && field.operator == "In")?;
    match field.values.as_deref() {
        Some([name]) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node() -> Node {
        serde_json::from_value(json!({"metadata": {
            "name": "n", "labels": {"zone": "a", "cores": "8"},
        }}))
        .unwrap()
    }

    fn allowed(spec: Value) -> bool {
        let mut pod = json!({"containers": []});
        for (key, value) in spec.as_object().unwrap() {
            pod[key] = value.clone();
        }
        is_allowed(&serde_json::from_value(pod).unwrap(), &node())
    }

    fn requiring(terms: Value) -> Value {
        json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
        }}})
    }

    fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
        json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}])
    }

    #[test]
    fn the_selector_is_a_set_of_labels() {
        assert!(allowed(json!({})));
        assert!(allowed(json!({"nodeSelector": {"zone": "a"}})));
        assert!(!allowed(
            json!({"nodeSelector": {"zone": "a", "disk": "ssd"}})
        ));
    }

    #[test]
    fn each_operator_means_what_it_says() {
        for (key, operator, values, holds) in [
            ("zone", "In", &["a", "b"][..], true),
            ("zone", "In", &["b"], false),
            ("zone", "NotIn", &["b"], true),
            ("disk", "NotIn", &["b"], true),
            ("zone", "Exists", &[], true),
            ("disk", "DoesNotExist", &[], true),
            ("cores", "Gt", &["4"], true),
            ("cores", "Gt", &["8"], false),
            ("cores", "Lt", &["9"], true),
            ("zone", "Lt", &["9"], false),
        ] {
            let terms = expression(key, operator, values);
            assert_eq!(
                allowed(requiring(terms)),
                holds,
                "{key} {operator} {values:?}"
            );
        }
    }

    #[test]
    fn terms_are_alternatives_and_an_empty_one_is_none() {
        assert!(!allowed(requiring(json!([{}]))));
        let either = json!([
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}]},
            {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
        ]);
        assert!(allowed(requiring(either)));
        let named =
            json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}]}]);
        assert!(!allowed(requiring(named)));
    }
}
