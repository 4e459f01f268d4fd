//! The volume of a member.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use windlass::object;

use super::labels_of_member;
use crate::{kind::Storage, member::Names};

/// The claim of a member; it has the member's name.
pub(crate) fn claim(names: Names<'_>, member: &str, storage: &Storage) -> PersistentVolumeClaim {
    object!(PersistentVolumeClaim {
        metadata: {
            name: member,
            generate_name: format!("{}-", names.cluster),
            labels: labels_of_member(names, member),
        },
        spec: {
            access_modes: ["ReadWriteOnce"],
            storage_class_name: storage.storage_class_name.clone(),
            resources: { requests: { "storage": storage.size.clone() } },
        },
    })
}
