//! The kinds of policy.

mod pod_disruption_budget;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "poddisruptionbudgets" => &pod_disruption_budget::PodDisruptionBudget,
        _ => return None,
    })
}
