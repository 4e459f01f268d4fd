//! Where a pod's volumes are, or can be made.
//!
//! A claim that is bound is where its volume is. One whose class waits for the first pod can be
//! anywhere a volume can be found or made for it; the node that is chosen is written on it, and
//! the pod is bound when the claim is. Any other claim has to be bound first.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;

use crate::volume::{best, is_reachable};

/// The annotation that says where a claim's first pod will be.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// What a pod's claims come to.
#[derive(Default)]
pub(crate) struct Volumes<'a> {
    /// Why the pod cannot be placed at all.
    missing: Option<String>,
    bound: Vec<Option<&'a PersistentVolume>>,
    /// Claims that wait for this pod, with their class and the volumes there are.
    waiting: Vec<(&'a PersistentVolumeClaim, &'a StorageClass)>,
    there: &'a [Arc<PersistentVolume>],
}

impl<'a> Volumes<'a> {
    /// The volumes of the claims that a pod names.
    pub(crate) fn of(
        names: &[String],
        claims: &'a [Arc<PersistentVolumeClaim>],
        volumes: &'a [Arc<PersistentVolume>],
        classes: &'a [Arc<StorageClass>],
    ) -> Self {
        let mut all = Self {
            there: volumes,
            ..Self::default()
        };
        for name in names {
            let claim = claims
                .iter()
                .find(|claim| claim.metadata.name.as_ref() == Some(name));
            let Some(claim) = claim else {
                all.miss(format!("persistentvolumeclaim {name:?} not found"));
                continue;
            };
            if claim.metadata.deletion_timestamp.is_some() {
                all.miss(format!("persistentvolumeclaim {name:?} is being deleted"));
                continue;
            }
            let spec = claim.spec.as_ref();
            let volume = spec
                .and_then(|spec| spec.volume_name.as_deref())
                .filter(|name| !name.is_empty());
            let phase = claim
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref());
            if let (Some(volume), Some("Bound")) = (volume, phase) {
                let found = volumes
                    .iter()
                    .find(|one| one.metadata.name.as_deref() == Some(volume));
                all.bound.push(found.map(Arc::as_ref));
                continue;
            }
            let class = spec.and_then(|spec| spec.storage_class_name.as_ref());
            let class = classes
                .iter()
                .find(|one| one.metadata.name.as_ref() == class);
            match class
                .filter(|one| one.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"))
            {
                Some(class) => all.waiting.push((claim, class)),
                None => all.miss("pod has unbound immediate PersistentVolumeClaims".to_owned()),
            }
        }
        all
    }

    fn miss(&mut self, why: String) {
        self.missing.get_or_insert(why);
    }

    /// Whether everything the pod names is there, or can be made.
    pub(crate) fn are_there(&self) -> Result<(), &str> {
        self.missing.as_deref().map_or(Ok(()), Err)
    }

    /// The claims that wait to be told where the pod will be.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &'a PersistentVolumeClaim> {
        self.waiting.iter().map(|(claim, _)| *claim)
    }

    /// Whether the node was chosen before, and written on a claim.
    pub(crate) fn chose(&self, node: &str) -> bool {
        self.waiting.iter().any(|(claim, _)| {
            let annotations = claim.metadata.annotations.as_ref();
            annotations
                .and_then(|all| all.get(SELECTED_NODE))
                .is_some_and(|chosen| chosen == node)
        })
    }

    /// Why the pod's volumes keep it off the node.
    pub(crate) fn refusal(&self, node: &Node) -> Option<&'static str> {
        for volume in &self.bound {
            match volume {
                None => {
                    return Some(
                        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
                    );
                }
                Some(volume) if !is_reachable(volume, node) => {
                    return Some("node(s) didn't match PersistentVolume's node affinity");
                }
                Some(_) => {}
            }
        }
        let there = self.there.iter().map(Arc::as_ref);
        let reachable: Vec<&PersistentVolume> =
            there.filter(|volume| is_reachable(volume, node)).collect();
        let is_hopeless = self.waiting.iter().any(|(claim, class)| {
            best(claim, &reachable, false).is_none()
                && class.provisioner == "kubernetes.io/no-provisioner"
        });
        is_hopeless.then_some("node(s) didn't find available persistent volumes to bind")
    }
}
