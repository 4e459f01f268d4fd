//! The kinds of apiextensions.k8s.io.

mod custom_resource_definition;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "customresourcedefinitions" => &custom_resource_definition::CustomResourceDefinition,
        _ => return None,
    })
}
