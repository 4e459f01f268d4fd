//! The kinds of node.k8s.io.

mod runtime_class;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "runtimeclasses" => &runtime_class::RuntimeClass,
        _ => return None,
    })
}
