//! The volume of a member.

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};

use super::{labels_of_member, metadata};
use crate::{kind::Storage, member::Names};

/// The claim of a member; it has the member's name.
pub(crate) fn claim(names: Names<'_>, member: &str, storage: &Storage) -> PersistentVolumeClaim {
    let mut metadata = metadata(names.cluster, member);
    metadata.generate_name = Some(format!("{}-", names.cluster));
    metadata.labels = Some(labels_of_member(names, member));
    PersistentVolumeClaim {
        metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            storage_class_name: storage.storage_class_name.clone(),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), storage.size.clone())].into()),
                ..VolumeResourceRequirements::default()
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}
