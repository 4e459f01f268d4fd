//! The kinds of scheduling.k8s.io.

pub(crate) mod priority_class;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "priorityclasses" => &priority_class::PriorityClass,
        _ => return None,
    })
}
