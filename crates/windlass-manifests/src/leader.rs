//! What an operator needs to agree with its replicas on which of them leads: its lease.

use k8s_openapi::{
    api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::{Description, role::named};

/// A role in the operator's own namespace, and its binding: for one lease, and nothing else.
pub fn role(description: &Description, namespace: &str) -> (Role, RoleBinding) {
    let name = format!("{}-leader-election", description.name);
    let metadata = ObjectMeta {
        name: Some(name.clone()),
        namespace: Some(namespace.to_owned()),
        ..named(description)
    };
    let rule = |names: Option<Vec<String>>, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec!["coordination.k8s.io".to_owned()]),
        resources: Some(vec!["leases".to_owned()]),
        resource_names: names,
        verbs: verbs.iter().map(ToString::to_string).collect(),
        ..PolicyRule::default()
    };
    let allowed = Role {
        metadata: metadata.clone(),
        rules: Some(vec![
            // A name does not limit who may create: the object is not there yet.
            rule(None, &["create"]),
            rule(Some(vec![description.name.clone()]), &["get", "update"]),
        ]),
    };
    let binding = RoleBinding {
        metadata,
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "Role".to_owned(),
            name,
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: description.name.clone(),
            namespace: Some(namespace.to_owned()),
            ..Subject::default()
        }]),
    };
    (allowed, binding)
}
