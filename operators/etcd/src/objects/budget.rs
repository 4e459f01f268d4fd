//! The budget: how many members must stay when nodes are emptied.

use k8s_openapi::{
    api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};

use super::{metadata, selector};
use crate::{decision::quorum, member::Names};

/// A majority of the members stays. A number, because pods of a kind without a scale subresource
/// can have no other budget.
pub(crate) fn budget(names: Names<'_>, members: usize) -> PodDisruptionBudget {
    let majority = i32::try_from(quorum(members)).unwrap_or(i32::MAX);
    PodDisruptionBudget {
        metadata: metadata(names.cluster, names.cluster),
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(majority)),
            selector: Some(LabelSelector {
                match_labels: Some(selector(names)),
                ..LabelSelector::default()
            }),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}
