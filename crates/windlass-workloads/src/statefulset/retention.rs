//! When claims go: what a StatefulSet's retention policy makes of their owners.
//!
//! A claim that has to go with the set is owned by the set, one that has to go because the set
//! was made smaller is owned by its pod; the garbage collector does the rest. A claim with another
//! controller, or with an owner of that name that is gone, is left to whoever it belongs to.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::ordinal::{ordinal, range, spec};

const SET: (&str, &str) = ("apps/v1", "StatefulSet");
const POD: (&str, &str) = ("v1", "Pod");

/// Whether the policy deletes claims with the set, and when it is made smaller.
fn deletes(set: &StatefulSet) -> (bool, bool) {
    let policy = spec(set).and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
    let is_delete = |when: Option<&String>| when.is_some_and(|when| when == "Delete");
    policy.map_or((false, false), |policy| {
        (
            is_delete(policy.when_deleted.as_ref()),
            is_delete(policy.when_scaled.as_ref()),
        )
    })
}

/// The owners of a claim.
pub(crate) fn references(claim: &PersistentVolumeClaim) -> &[OwnerReference] {
    claim
        .metadata
        .owner_references
        .as_deref()
        .unwrap_or_default()
}

/// Whether a reference names an object, whatever its uid.
fn names(reference: &OwnerReference, kind: (&str, &str), owner: &ObjectMeta) -> bool {
    (reference.api_version.as_str(), reference.kind.as_str()) == kind
        && Some(&reference.name) == owner.name.as_ref()
}

fn is_to(reference: &OwnerReference, owner: &ObjectMeta) -> bool {
    Some(&reference.uid) == owner.uid.as_ref()
}

/// Whether the claim is owned by an object of this name that is another, or gone.
fn is_stale(claim: &PersistentVolumeClaim, kind: (&str, &str), owner: &ObjectMeta) -> bool {
    let named = references(claim).iter().find(|one| names(one, kind, owner));
    named.is_some_and(|reference| !is_to(reference, owner))
}

/// Whether the claim still belongs to a pod that is gone, and so is about to go itself.
pub(crate) fn is_doomed(set: &StatefulSet, claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    deletes(set).1 && is_stale(claim, POD, &pod.metadata)
}

/// Whether somebody else controls the claim.
pub(crate) fn is_anothers(set: &StatefulSet, claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    if deletes(set) == (false, false) {
        return false;
    }
    references(claim).iter().any(|reference| {
        if names(reference, SET, &set.metadata) {
            !is_to(reference, &set.metadata)
        } else if names(reference, POD, &pod.metadata) {
            !is_to(reference, &pod.metadata)
        } else {
            reference.controller == Some(true)
        }
    })
}

fn controller(kind: (&str, &str), owner: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: kind.0.to_owned(),
        kind: kind.1.to_owned(),
        name: owner.name.clone().unwrap_or_default(),
        uid: owner.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The owners the claim of a pod should have, when they are not those it has.
pub(crate) fn owners(
    set: &StatefulSet,
    claim: &PersistentVolumeClaim,
    pod: &Pod,
) -> Option<Vec<OwnerReference>> {
    if is_stale(claim, SET, &set.metadata) || is_stale(claim, POD, &pod.metadata) {
        return None;
    }
    let has = |owner: &ObjectMeta| references(claim).iter().any(|one| is_to(one, owner));
    let (has_set, has_pod) = (has(&set.metadata), has(&pod.metadata));
    let mut owners: Vec<OwnerReference> = references(claim).to_vec();
    owners.retain(|one| !names(one, SET, &set.metadata) && !names(one, POD, &pod.metadata));
    if is_anothers(set, claim, pod) {
        return (has_set || has_pod).then_some(owners);
    }
    let halfway = references(claim).iter().any(|reference| {
        let ours = is_to(reference, &set.metadata) || is_to(reference, &pod.metadata);
        ours && reference.controller != Some(true)
    });
    let scaled_down = !ordinal(set, pod).is_some_and(|ordinal| range(set).contains(&ordinal));
    let (with_set, with_scale) = deletes(set);
    let wants_pod = with_scale && scaled_down;
    let wants_set = with_set && !wants_pod;
    if !halfway && (has_set, has_pod) == (wants_set, wants_pod) {
        return None;
    }
    if wants_set {
        owners.push(controller(SET, &set.metadata));
    }
    if wants_pod {
        owners.push(controller(POD, &pod.metadata));
    }
    Some(owners)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(when_deleted: &str, when_scaled: &str) -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "uid": "set"},
            "spec": {
                "replicas": 1, "selector": {}, "template": {}, "serviceName": "",
                "persistentVolumeClaimRetentionPolicy": {
                    "whenDeleted": when_deleted, "whenScaled": when_scaled,
                },
            },
        }))
        .unwrap()
    }

    fn pod(ordinal: i32) -> Pod {
        let mut pod = crate::pod::testing::pod(&format!("web-{ordinal}"));
        pod.metadata.uid = Some("pod".to_owned());
        pod
    }

    fn claim(owners: &[OwnerReference]) -> PersistentVolumeClaim {
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.owner_references = Some(owners.to_vec());
        claim
    }

    fn kinds(owners: Option<Vec<OwnerReference>>) -> Option<Vec<String>> {
        owners.map(|owners| owners.into_iter().map(|owner| owner.kind).collect())
    }

    #[test]
    fn each_policy_has_its_owner() {
        let bare = claim(&[]);
        for (deleted, scaled, inside, outside) in [
            ("Retain", "Retain", None, None),
            ("Delete", "Retain", Some("StatefulSet"), Some("StatefulSet")),
            ("Retain", "Delete", None, Some("Pod")),
            ("Delete", "Delete", Some("StatefulSet"), Some("Pod")),
        ] {
            let set = set(deleted, scaled);
            let wanted = |kind: Option<&str>| kind.map(|kind| vec![kind.to_owned()]);
            assert_eq!(
                kinds(owners(&set, &bare, &pod(0))),
                wanted(inside),
                "{deleted} {scaled}"
            );
            assert_eq!(
                kinds(owners(&set, &bare, &pod(1))),
                wanted(outside),
                "{deleted} {scaled}"
            );
        }
    }

    #[test]
    fn a_changed_policy_takes_owners_away() {
        let owned = claim(&[controller(SET, &set("Delete", "Retain").metadata)]);
        assert_eq!(owners(&set("Delete", "Retain"), &owned, &pod(0)), None);
        assert_eq!(
            kinds(owners(&set("Retain", "Retain"), &owned, &pod(0))),
            Some(vec![])
        );
    }

    #[test]
    fn what_belongs_to_another_is_left_alone() {
        let set = set("Delete", "Delete");
        let mut other = controller(SET, &set.metadata);
        other.name = "other".to_owned();
        other.uid = "other".to_owned();
        assert!(is_anothers(&set, &claim(&[other.clone()]), &pod(0)));
        assert_eq!(owners(&set, &claim(&[other]), &pod(0)), None);
        let mut gone = controller(POD, &pod(0).metadata);
        gone.uid = "gone".to_owned();
        assert!(is_doomed(&set, &claim(&[gone.clone()]), &pod(0)));
        assert_eq!(owners(&set, &claim(&[gone]), &pod(0)), None);
    }
}
