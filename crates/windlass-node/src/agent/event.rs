//! Events about pods, as `kubectl describe` shows them.

use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::testing::Environment;

use super::Identity;
use crate::runtime::Note;

/// The longest note the API allows, in bytes.
const LONGEST: usize = 1024;

/// The event that tells a note about a pod.
pub(super) fn event(
    pod: &Pod,
    identity: &Identity,
    note: &Note,
    environment: &Environment,
) -> Event {
    let metadata = &pod.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let end = note.message.floor_char_boundary(LONGEST);
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{}", environment.random.suffix(10))),
            namespace: metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        action: Some(note.reason.to_owned()),
        event_time: Some(environment.clock.micro_time()),
        note: Some(note.message[..end].to_owned()),
        reason: Some(note.reason.to_owned()),
        regarding: Some(ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            ..ObjectReference::default()
        }),
        reporting_controller: Some("windlass.dev/node".to_owned()),
        reporting_instance: Some(identity.name.clone()),
        type_: Some(if note.warning { "Warning" } else { "Normal" }.to_owned()),
        ..Event::default()
    }
}
