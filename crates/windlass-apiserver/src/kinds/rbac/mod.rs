//! The kinds of rbac.authorization.k8s.io.

mod cell;
mod cluster_role;
mod cluster_role_binding;
mod role;
mod role_binding;
pub(crate) mod validation;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "clusterroles" => &cluster_role::ClusterRole,
        "clusterrolebindings" => &cluster_role_binding::ClusterRoleBinding,
        "roles" => &role::Role,
        "rolebindings" => &role_binding::RoleBinding,
        _ => return None,
    })
}
