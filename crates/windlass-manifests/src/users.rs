//! Roles for people who use an operator's kinds: admin, editor and viewer of each. They are bound to
//! nobody; whoever runs the cluster binds them.

use k8s_openapi::{
    api::rbac::v1::{ClusterRole, PolicyRule},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::{Description, role::named};

/// Who may do what with objects of a kind.
pub const USERS: [(&str, &[&str]); 3] = [
    ("admin", &["*"]),
    (
        "editor",
        &[
            "create", "delete", "get", "list", "patch", "update", "watch",
        ],
    ),
    ("viewer", &["get", "list", "watch"]),
];

/// The three roles of a kind, in the order of [`USERS`].
pub fn roles(description: &Description, crd: &CustomResourceDefinition) -> Vec<ClusterRole> {
    let names = &crd.spec.names;
    let rule = |resource: String, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![crd.spec.group.clone()]),
        resources: Some(vec![resource]),
        verbs: verbs.iter().map(ToString::to_string).collect(),
        ..PolicyRule::default()
    };
    let roles = USERS.iter().map(|(user, verbs)| ClusterRole {
        metadata: ObjectMeta {
            name: Some(format!(
                "{}-{}-{user}",
                description.name,
                names.kind.to_lowercase()
            )),
            ..named(description)
        },
        rules: Some(vec![
            rule(names.plural.clone(), verbs),
            rule(format!("{}/status", names.plural), &["get"]),
        ]),
        ..ClusterRole::default()
    });
    roles.collect()
}
