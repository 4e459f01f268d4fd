//! Volumes in a folder of this machine.

use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeSpec,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{PROVISIONED_BY, PROVISIONER, annotation};

/// Where volumes are made.
#[derive(Clone, Debug)]
pub struct LocalVolumes {
    /// The folder with a folder for each volume. The node makes those as pods need them.
    pub folder: PathBuf,
    /// How the folder of a volume is removed when nobody wants it any more.
    pub remove: fn(&Path) -> io::Result<()>,
}

/// The volume of a claim: a folder that is there when a pod needs it.
pub(crate) fn volume(
    local: &LocalVolumes,
    class: &StorageClass,
    claim: &PersistentVolumeClaim,
) -> PersistentVolume {
    let uid = claim.metadata.uid.as_deref().unwrap_or_default();
    let name = format!("pvc-{uid}");
    let spec = claim.spec.clone().unwrap_or_default();
    let requests = spec.resources.and_then(|resources| resources.requests);
    let path = local.folder.join(&name);
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name),
            annotations: Some([(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: requests,
            claim_ref: Some(ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("PersistentVolumeClaim".to_owned()),
                name: claim.metadata.name.clone(),
                namespace: claim.metadata.namespace.clone(),
                uid: claim.metadata.uid.clone(),
                resource_version: claim.metadata.resource_version.clone(),
                field_path: None,
            }),
            host_path: Some(HostPathVolumeSource {
                path: path.to_string_lossy().into_owned(),
                type_: Some("DirectoryOrCreate".to_owned()),
            }),
            mount_options: class.mount_options.clone(),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
            storage_class_name: class.metadata.name.clone(),
            volume_mode: spec.volume_mode,
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

/// The folder of a volume that was made here; never anything outside.
pub(crate) fn folder(local: &LocalVolumes, volume: &PersistentVolume) -> Option<PathBuf> {
    let made_here = annotation(&volume.metadata, PROVISIONED_BY) == Some(PROVISIONER);
    let name = volume.metadata.name.as_deref()?;
    let path = &volume.spec.as_ref()?.host_path.as_ref()?.path;
    let folder = local.folder.join(name);
    (made_here && Path::new(path) == folder).then_some(folder)
}
