//! What is wrong with a set, each with the path of its field.
//!
//! The rules about single fields are in the schema; here is what compares fields, or sets. What is
//! left is refused by the API server when the pod is created.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt;
use windlass::webhook::Verdict;

use crate::kind::SidecarSet;
use crate::overlap::overlap;

/// Validates a set by itself and against the others.
pub(crate) fn validate(set: &SidecarSet, others: &[Arc<SidecarSet>]) -> Verdict {
    let mut verdict = Verdict::allow();
    let (mut volumes, mut names) = (BTreeSet::new(), BTreeSet::new());
    for (index, volume) in set.spec.volumes.iter().enumerate() {
        if !volumes.insert(&volume.name) {
            verdict.duplicate(format!("spec.volumes[{index}].name"), &*volume.name);
        }
    }
    let mut others: Vec<&SidecarSet> = others.iter().map(AsRef::as_ref).collect();
    others.retain(|other| other.name_any() != set.name_any() && overlap(&set.spec, &other.spec));
    for (at, container) in set.spec.all_containers() {
        let name = container.name.as_str();
        if !names.insert(name) {
            verdict.duplicate(format!("{at}.name"), name);
        }
        // A pod cannot have two containers of one name.
        let has = |other: &SidecarSet| other.spec.all_containers().any(|(_, one)| one.name == name);
        for other in others.iter().filter(|other| has(other)) {
            let other = other.name_any();
            let why =
                format!("SidecarSet {other} puts a container of this name into the same pods");
            verdict.invalid(format!("{at}.name"), name, why);
        }
        let mut paths = BTreeSet::new();
        for (index, mount) in container.volume_mounts.iter().flatten().enumerate() {
            let at = format!("{at}.volumeMounts[{index}]");
            if !volumes.contains(&mount.name) {
                verdict.invalid(
                    format!("{at}.name"),
                    &*mount.name,
                    "is none of spec.volumes",
                );
            }
            if !paths.insert(&mount.mount_path) {
                verdict.invalid(
                    format!("{at}.mountPath"),
                    &*mount.mount_path,
                    "must be unique",
                );
            }
        }
    }
    verdict
}
