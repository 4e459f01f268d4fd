//! What a pod got, recorded on it: by set its generation, the hash of what it put there, and which
//! containers those are.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use windlass::hash_of;

use crate::kind::{SidecarSet, SidecarSetSpec};

/// The annotation of a pod that holds its records, as JSON: an object by the names of the sets.
pub const ANNOTATION: &str = "kruise.io/sidecarset-hash";

/// The annotation of a pod that says when it was last sent an image.
pub(crate) const SENT: &str = "kruise.io/sidecarset-image-sent-time";

/// What one set put into a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The set's generation at that time.
    #[serde(default)]
    pub generation: i64,
    /// The hash of what it put there.
    pub hash: String,
    /// The same but for the images of its containers: what cannot be changed in a running pod.
    #[serde(default)]
    pub hash_without_image: String,
    /// The names of its containers.
    #[serde(default)]
    pub sidecar_list: Vec<String>,
    /// By container that was given another image: what it ran before, as far as was known when the
    /// image was sent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub former: BTreeMap<String, Vec<Former>>,
}

/// What a container ran before it was given another image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Former {
    /// The image, as the pod named it.
    pub image: String,
    /// What ran for it; empty if that was not known.
    #[serde(rename = "imageID", skip_serializing_if = "String::is_empty")]
    pub image_id: String,
    /// The container's id; empty if that was not known.
    #[serde(rename = "containerID", skip_serializing_if = "String::is_empty")]
    pub container_id: String,
}

impl Record {
    /// What a set puts into a pod now.
    pub(crate) fn of(set: &SidecarSet) -> Self {
        let mut spec = set.spec.clone();
        let hash = hash_of_pod_parts(&spec);
        for sidecar in &mut spec.containers {
            sidecar.container.image = None;
        }
        let names = spec.containers.iter().map(|one| &one.container.name);
        Self {
            generation: set.metadata.generation.unwrap_or_default(),
            hash,
            hash_without_image: hash_of_pod_parts(&spec),
            sidecar_list: names.cloned().collect(),
            former: BTreeMap::new(),
        }
    }
}

/// The hash of what is put into pods.
fn hash_of_pod_parts(spec: &SidecarSetSpec) -> String {
    let (containers, init_containers) = (&spec.containers, &spec.init_containers);
    let (volumes, secrets) = (&spec.volumes, &spec.image_pull_secrets);
    hash_of(&(containers, init_containers, volumes, secrets))
}

/// The records of a pod by the names of the sets; empty if the annotation is missing or invalid.
pub fn records_of(pod: &Pod) -> BTreeMap<String, Record> {
    let text = pod.annotations().get(ANNOTATION);
    let records = text.and_then(|text| serde_json::from_str(text).ok());
    records.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_second_hash_ignores_images() {
        let before = Record::of(&crate::sample::set());
        let mut set = crate::sample::set();
        set.spec.containers[0].container.image = Some("memcached:2".to_owned());
        let image = Record::of(&set);
        assert_ne!(image.hash, before.hash);
        assert_eq!(image.hash_without_image, before.hash_without_image);
        set.spec.containers[0].container.command = Some(vec!["sleep".to_owned()]);
        let more = Record::of(&set);
        assert_ne!(more.hash_without_image, before.hash_without_image);
    }

    #[test]
    fn what_is_not_put_into_pods_changes_no_hash() {
        let before = Record::of(&crate::sample::set());
        let mut set = crate::sample::set();
        set.spec.update_strategy.paused = true;
        set.spec.selector = None;
        assert_eq!(Record::of(&set), before);
    }
}
