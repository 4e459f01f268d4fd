//! The kinds of storage.k8s.io.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod storage_class;
pub(crate) mod validation;
mod volume_attachment;
mod volume_attributes_class;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "csidrivers" => &csi_driver::CSIDriver,
        "csinodes" => &csi_node::CSINode,
        "csistoragecapacities" => &csi_storage_capacity::CSIStorageCapacity,
        "storageclasses" => &storage_class::StorageClass,
        "volumeattachments" => &volume_attachment::VolumeAttachment,
        "volumeattributesclasses" => &volume_attributes_class::VolumeAttributesClass,
        _ => return None,
    })
}
