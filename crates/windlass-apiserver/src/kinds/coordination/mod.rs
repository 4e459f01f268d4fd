//! The kinds of coordination.k8s.io.

mod lease;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "leases" => &lease::Lease,
        _ => return None,
    })
}
