//! Which volume suits a claim: the smallest that is large enough and has what is asked for.

use std::borrow::Borrow;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};

use crate::quantity;
use crate::{affinity, owner};

/// The class of a claim; empty for none.
pub(crate) fn class_of(claim: &PersistentVolumeClaim) -> &str {
    let spec = claim.spec.as_ref();
    spec.and_then(|spec| spec.storage_class_name.as_deref())
        .unwrap_or_default()
}

fn size(
    amounts: Option<
        &std::collections::BTreeMap<
            String,
            k8s_openapi::apimachinery::pkg::api::resource::Quantity,
        >,
    >,
) -> i128 {
    let storage = amounts.and_then(|amounts| amounts.get("storage"));
    storage.map_or(0, |storage| quantity::read(storage).nanos())
}

fn capacity(volume: &PersistentVolume) -> i128 {
    size(volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()))
}

/// Whether the volume is meant for this very claim.
pub(crate) fn is_meant_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let reference = volume
        .spec
        .as_ref()
        .and_then(|spec| spec.claim_ref.as_ref());
    reference.is_some_and(|reference| {
        let uid = reference.uid.as_deref().filter(|uid| !uid.is_empty());
        reference.name == claim.metadata.name
            && reference.namespace == claim.metadata.namespace
            && uid.is_none_or(|uid| Some(uid) == claim.metadata.uid.as_deref())
    })
}

fn is_free(volume: &PersistentVolume) -> bool {
    let spec = volume.spec.as_ref();
    spec.is_none_or(|spec| spec.claim_ref.is_none()) && volume.metadata.deletion_timestamp.is_none()
}

/// Whether the volume has what the claim asks for.
fn suits(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let has = volume.spec.clone().unwrap_or_default();
    let wants = claim.spec.clone().unwrap_or_default();
    let modes = has.access_modes.unwrap_or_default();
    let has_modes = wants
        .access_modes
        .iter()
        .flatten()
        .all(|mode| modes.contains(mode));
    let form = |mode: Option<&String>| mode.map_or("Filesystem".to_owned(), Clone::clone);
    let selected = wants.selector.as_ref().is_none_or(|selector| {
        owner::selector(selector)
            .is_some_and(|selector| owner::matches(&selector, &volume.metadata))
    });
    let requests = wants
        .resources
        .as_ref()
        .and_then(|resources| resources.requests.as_ref());
    has_modes
        && selected
        && form(has.volume_mode.as_ref()) == form(wants.volume_mode.as_ref())
        && has.storage_class_name.as_deref().unwrap_or_default() == class_of(claim)
        && has.volume_attributes_class_name == wants.volume_attributes_class_name
        && capacity(volume) >= size(requests)
}

/// Whether the volume can be reached from the node.
pub(crate) fn is_reachable(volume: &PersistentVolume, node: &Node) -> bool {
    let affinity = volume
        .spec
        .as_ref()
        .and_then(|spec| spec.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    required.is_none_or(|required| affinity::matches(required, node))
}

/// The volume for a claim: one that is meant for it, or else, unless only such are asked for, the
/// smallest free one that suits; of equals the first by name.
pub(crate) fn best<'a>(
    claim: &PersistentVolumeClaim,
    volumes: &'a [impl Borrow<PersistentVolume>],
    only_meant: bool,
) -> Option<&'a PersistentVolume> {
    let volumes = || volumes.iter().map(Borrow::borrow);
    if let Some(volume) = volumes().find(|volume| is_meant_for(volume, claim)) {
        return Some(volume);
    }
    let free = volumes().filter(|volume| is_free(volume) && suits(volume, claim));
    free.min_by_key(|volume| (capacity(volume), volume.metadata.name.clone()))
        .filter(|_| !only_meant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn volume(name: &str, size: &str, more: Value) -> PersistentVolume {
        let mut volume = json!({
            "metadata": {"name": name},
            "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]},
        });
        for (key, value) in more.as_object().unwrap() {
            volume["spec"][key] = value.clone();
        }
        serde_json::from_value(volume).unwrap()
    }

    fn claim(size: &str, more: Value) -> PersistentVolumeClaim {
        let mut claim = json!({
            "metadata": {"name": "data", "namespace": "n", "uid": "u"},
            "spec": {"resources": {"requests": {"storage": size}}, "accessModes": ["ReadWriteOnce"]},
        });
        for (key, value) in more.as_object().unwrap() {
            claim["spec"][key] = value.clone();
        }
        serde_json::from_value(claim).unwrap()
    }

    fn chosen(claim: &PersistentVolumeClaim, volumes: &[PersistentVolume]) -> Option<String> {
        best(claim, volumes, false).and_then(|volume| volume.metadata.name.clone())
    }

    #[test]
    fn the_smallest_that_is_large_enough_is_taken() {
        let volumes = [
            volume("large", "5Gi", json!({})),
            volume("right", "2Gi", json!({})),
            volume("small", "500Mi", json!({})),
        ];
        let one = claim("1Gi", json!({}));
        assert_eq!(chosen(&one, &volumes).as_deref(), Some("right"));
        assert_eq!(chosen(&claim("9Gi", json!({})), &volumes), None);
        assert_eq!(best(&one, &volumes, true), None);
    }

    #[test]
    fn class_mode_and_form_have_to_agree() {
        let volumes = [volume("a", "1Gi", json!({"storageClassName": "fast"}))];
        assert_eq!(chosen(&claim("1Gi", json!({})), &volumes), None);
        let fast = json!({"storageClassName": "fast"});
        assert_eq!(chosen(&claim("1Gi", fast), &volumes).as_deref(), Some("a"));
        let many = json!({"storageClassName": "fast", "accessModes": ["ReadWriteMany"]});
        assert_eq!(chosen(&claim("1Gi", many), &volumes), None);
        let block = json!({"storageClassName": "fast", "volumeMode": "Block"});
        assert_eq!(chosen(&claim("1Gi", block), &volumes), None);
    }

    #[test]
    fn what_is_meant_for_a_claim_goes_to_it_and_to_no_other() {
        let meant = json!({"claimRef": {"namespace": "n", "name": "data"}});
        let volumes = [volume("a", "1Gi", json!({})), volume("b", "9Gi", meant)];
        assert_eq!(
            chosen(&claim("1Gi", json!({})), &volumes).as_deref(),
            Some("b")
        );
        let mut other = claim("1Gi", json!({}));
        other.metadata.name = Some("other".to_owned());
        assert_eq!(chosen(&other, &volumes).as_deref(), Some("a"));
        let another = json!({"claimRef": {"namespace": "n", "name": "data", "uid": "older"}});
        assert_eq!(
            chosen(&claim("1Gi", json!({})), &[volume("b", "9Gi", another)]),
            None
        );
    }
}
