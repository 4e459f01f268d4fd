//! Which nodes and which other pods a pod wants to be near to, or far from.

use std::collections::BTreeSet;

use crate::names;
use crate::validation::at::{At, Causes};
use crate::validation::{label, node_selector};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn check(at: &At<'_, '_>, causes: &mut Causes) {
    let nodes = at.child("nodeAffinity");
    if let Some(required) = nodes.get(REQUIRED) {
        node_selector::check(&required, causes);
    }
    for preferred in nodes.items(PREFERRED) {
        weight(&preferred, causes);
        node_selector::check_term(&preferred.child("preference"), false, causes);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = at.child(kind);
        for term in pods.items(REQUIRED) {
            pod_term(&term, causes);
        }
        for preferred in pods.items(PREFERRED) {
            weight(&preferred, causes);
            pod_term(&preferred.child("podAffinityTerm"), causes);
        }
    }
}

fn weight(at: &At<'_, '_>, causes: &mut Causes) {
    let weight = at.int("weight").unwrap_or_default();
    if !(1..=100).contains(&weight) {
        causes.push(
            at.child("weight")
                .invalid_value(weight, "must be in the range 1-100"),
        );
    }
}

fn pod_term(at: &At<'_, '_>, causes: &mut Causes) {
    label::selector(&at.child("labelSelector"), causes);
    label::selector(&at.child("namespaceSelector"), causes);
    for name in at.items("namespaces") {
        let text = name.value.as_str().unwrap_or_default();
        for why in names::label_errors(text) {
            causes.push(at.child("namespace").invalid_value(text, &why));
        }
    }
    label_keys(at, causes);
    if at.text("topologyKey").is_empty() {
        causes.push(at.child("topologyKey").required("can not be empty"));
    }
    label::qualified(&at.child("topologyKey"), causes);
}

/// Labels whose values are taken from the pod itself.
pub(super) fn label_keys(at: &At<'_, '_>, causes: &mut Causes) {
    for list in ["matchLabelKeys", "mismatchLabelKeys"] {
        if at.list(list).is_empty() {
            continue;
        }
        if !at.has("labelSelector") {
            let why = "must not be specified when labelSelector is not set";
            causes.push(at.child(list).forbidden(why));
            continue;
        }
        for key in at.items(list) {
            label::qualified(&key, causes);
        }
    }
    let selector = at.child("labelSelector");
    let mut chosen: BTreeSet<&str> = selector
        .map("matchLabels")
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    for expression in selector.items("matchExpressions") {
        let key = expression.text("key");
        let place = at.list("matchLabelKeys").iter().rposition(|one| one == key);
        if let Some(index) = place.filter(|_| chosen.contains(key)) {
            let why = "exists in both matchLabelKeys and labelSelector";
            let path = format!("{at}[{index}]");
            causes.push(crate::status::field::invalid(path, &key.into(), why));
        }
        chosen.insert(key);
    }
    for key in at.items("matchLabelKeys") {
        if at.list("mismatchLabelKeys").contains(key.value) {
            causes.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
        }
    }
}
