//! The budget: how many members must stay when nodes are emptied.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use windlass::object;

use super::{labels, selector};
use crate::{decision::quorum, member::Names};

/// A majority of the members stays. A number, because pods of a kind without a scale subresource
/// can have no other budget.
pub(crate) fn budget(names: Names<'_>, members: usize) -> PodDisruptionBudget {
    let majority = i32::try_from(quorum(members)).unwrap_or(i32::MAX);
    object!(PodDisruptionBudget {
        metadata: { name: names.cluster, labels: labels(names.cluster) },
        spec: { min_available: majority, selector: { match_labels: selector(names) } },
    })
}
