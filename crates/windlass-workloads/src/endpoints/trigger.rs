//! Which change the endpoints answer: the earliest since they were last looked at, as an
//! annotation from which people compute how long the way to the proxies takes.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Key;

use crate::pod;

const ANNOTATION: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// What was seen of each Service.
#[derive(Default)]
pub(super) struct Triggers(Mutex<BTreeMap<Key, Seen>>);

struct Seen {
    service: Option<Timestamp>,
    /// Since when each pod has been ready or not, by name.
    pods: BTreeMap<String, Timestamp>,
}

impl Triggers {
    /// The time of the earliest change since the last call.
    pub(super) fn since_last(
        &self,
        key: &Key,
        service: &Service,
        pods: &[impl Borrow<Pod>],
    ) -> Option<Timestamp> {
        let created = service.metadata.creation_timestamp.as_ref();
        let now = Seen {
            service: created.map(|time| time.0),
            pods: pods
                .iter()
                .filter_map(|pod| last_change(pod.borrow()))
                .collect(),
        };
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = seen.get(key) else {
            let trigger = now.service;
            seen.insert(key.clone(), now);
            return trigger;
        };
        let of_pods = now.pods.iter();
        let of_pods =
            of_pods.filter(|(name, at)| before.pods.get(*name).is_none_or(|was| was < *at));
        let of_service = now.service.filter(|at| Some(*at) > before.service);
        let trigger = of_pods.map(|(_, at)| *at).chain(of_service).min();
        seen.insert(key.clone(), now);
        trigger
    }

    /// The Service is gone.
    pub(super) fn forget(&self, key: &Key) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.remove(key);
    }
}

fn last_change(pod: &Pod) -> Option<(String, Timestamp)> {
    let at = pod::condition(pod, "Ready")?
        .last_transition_time
        .as_ref()?;
    Some((pod.metadata.name.clone()?, at.0))
}

/// Notes the change, or that there was none that anybody could measure.
pub(super) fn annotate(metadata: &mut ObjectMeta, trigger: Option<Timestamp>) {
    let annotations = metadata.annotations.get_or_insert_default();
    match trigger {
        Some(at) => annotations.insert(ANNOTATION.to_owned(), at.to_string()),
        None => annotations.remove(ANNOTATION),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::{at, pod, ready};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    #[test]
    fn the_earliest_change_since_the_last_look_is_answered() {
        let (triggers, key) = (Triggers::default(), Key::namespaced("n", "web"));
        let mut service = Service::default();
        service.metadata.creation_timestamp = Some(Time(at(5)));
        let since = |pods: &[Pod]| triggers.since_last(&key, &service, pods);
        // A Service seen for the first time was triggered by its creation.
        assert_eq!(since(&[ready(pod("a"), 7)]), Some(at(5)));
        assert_eq!(since(&[ready(pod("a"), 7)]), None);
        let (b, c) = (ready(pod("b"), 9), ready(pod("c"), 8));
        assert_eq!(since(&[ready(pod("a"), 7), b, c]), Some(at(8)));
    }
}
