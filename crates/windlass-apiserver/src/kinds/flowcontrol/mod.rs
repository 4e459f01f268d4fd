//! The kinds of flowcontrol.apiserver.k8s.io.

mod flow_schema;
mod priority_level;
pub(crate) mod validation;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "flowschemas" => &flow_schema::FlowSchema,
        "prioritylevelconfigurations" => &priority_level::PriorityLevelConfiguration,
        _ => return None,
    })
}
