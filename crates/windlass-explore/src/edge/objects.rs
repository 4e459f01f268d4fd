//! The objects of a run: what was made of them, and whether they are as they must always be.

use bytes::Bytes;
use serde_json::Value;
use windlass_apiserver::hooks::EventKind;
use windlass_apiserver::http::ResourceRequest;

use super::{Inner, Tracked};
use crate::invariant::Invariant;
use crate::names;
use crate::state::{self, Object, State};

/// What leader election writes into objects that are not Leases.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

impl Inner {
    /// What must always hold, and does not after this request.
    pub(super) fn violation(
        &self,
        invariants: &[Invariant],
        request: &ResourceRequest,
    ) -> Option<(String, String)> {
        let objects = self.parsed();
        invariants.iter().find_map(|rule| {
            let why = rule.broken(&objects)?;
            Some((
                rule.name.clone(),
                format!("after {}, {why}", names::request(request)),
            ))
        })
    }

    /// The objects that this run has made or changed, by resource.
    pub(super) fn parsed(&self) -> Vec<(String, Value)> {
        let objects = self.objects.values().filter_map(|tracked| {
            let value = serde_json::from_slice(tracked.now.as_ref()?).ok()?;
            Some((tracked.resource.clone(), value))
        });
        objects.collect()
    }

    pub(super) fn note(&mut self, change: &windlass_apiserver::hooks::Written) {
        let key = (
            change.resource().to_owned(),
            change.namespace().to_owned(),
            change.name().to_owned(),
        );
        let after = (change.kind() != EventKind::Deleted).then(|| change.after().clone());
        let is_lock = change.resource() == "leases.coordination.k8s.io"
            || (matches!(change.resource(), "configmaps" | "endpoints")
                && holds(change.after(), LEADER));
        if is_lock {
            self.locks.insert(key.clone());
        }
        let first = change.before().cloned();
        let tracked = self.objects.entry(key).or_insert_with(|| Tracked {
            resource: change.resource().to_owned(),
            first,
            now: None,
        });
        tracked.now = after;
    }

    pub(super) fn state(&self, ignore: &[String]) -> State {
        let tracked = self.objects.iter();
        let tracked = tracked.filter(|((resource, namespace, name), tracked)| {
            // Revisions of templates are the notes of the cluster's own controllers.
            let is_note = resource == "controllerrevisions.apps";
            !is_note
                && !self.is_ceaseless(resource, namespace, name)
                && tracked.now != tracked.first
        });
        let objects = tracked.filter_map(|((resource, ..), tracked)| {
            let mut value: Value = serde_json::from_slice(tracked.now.as_ref()?).ok()?;
            let kind = value["kind"].as_str().unwrap_or_default().to_owned();
            let is_old = state::is_history(&kind, &value);
            // When a controller of the cluster adopts what is there is its own business.
            let owners = value.pointer_mut("/metadata/ownerReferences");
            if let Some(owners) = owners.and_then(Value::as_array_mut) {
                owners.retain(|owner| owner["apiVersion"] != "apps/v1");
            }
            (!is_old).then(|| Object {
                of: resource.clone(),
                kind,
                value,
            })
        });
        State::of(objects.collect(), ignore)
    }
}

/// Whether the JSON has this text in it: a cheap look before it is parsed.
fn holds(json: &Bytes, text: &str) -> bool {
    json.windows(text.len()).any(|part| part == text.as_bytes())
}
