//! The kinds of autoscaling.

mod cell;
mod form;
mod v1;
mod v2;
pub(crate) mod validation;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(version: &str, plural: &str) -> Option<&'static dyn Strategy> {
    Some(match (version, plural) {
        ("v1", "horizontalpodautoscalers") => &v1::HorizontalPodAutoscalerV1,
        (_, "horizontalpodautoscalers") => &v2::HorizontalPodAutoscaler,
        _ => return None,
    })
}
