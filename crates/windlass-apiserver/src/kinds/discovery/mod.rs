//! The kinds of discovery.k8s.io.

mod endpoint_slice;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "endpointslices" => &endpoint_slice::EndpointSlice,
        _ => return None,
    })
}
