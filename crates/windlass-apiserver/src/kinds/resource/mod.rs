//! The kinds of resource.k8s.io.

mod admin_access;
mod device_class;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;
pub(crate) mod validation;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "deviceclasses" => &device_class::DeviceClass,
        "resourceclaims" => &resource_claim::ResourceClaim,
        "resourceclaimtemplates" => &resource_claim_template::ResourceClaimTemplate,
        "resourceslices" => &resource_slice::ResourceSlice,
        _ => return None,
    })
}
