//! The kinds of apiregistration.k8s.io.

mod api_service;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "apiservices" => &api_service::APIService,
        _ => return None,
    })
}
