//! The operator's role: the sum of what its parts may do.
//!
//! Rules are given per group and resource; resources with equal verbs in one group share a rule.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::{
        core::v1::ServiceAccount,
        rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::Description;

const RBAC: &str = "rbac.authorization.k8s.io";

/// The rules of the role, in a stable order.
pub fn policy_rules(description: &Description) -> Vec<PolicyRule> {
    type Names<'a> = &'a BTreeSet<String>;
    let mut verbs: BTreeMap<(&str, &str, Names<'_>), BTreeSet<&str>> = BTreeMap::new();
    for rule in description.rules() {
        let resource = (rule.group.as_str(), rule.resource.as_str(), &rule.names);
        let known = verbs.entry(resource).or_default();
        known.extend(rule.verbs.iter().map(String::as_str));
    }
    let mut resources: BTreeMap<(&str, Names<'_>, BTreeSet<&str>), Vec<&str>> = BTreeMap::new();
    for ((group, resource, names), verbs) in verbs {
        let same = resources.entry((group, names, verbs)).or_default();
        same.push(resource);
    }
    let mut rules: Vec<PolicyRule> = resources
        .into_iter()
        .map(|((group, names, verbs), resources)| PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resource_names: (!names.is_empty()).then(|| names.iter().cloned().collect()),
            resources: Some(resources.into_iter().map(ToOwned::to_owned).collect()),
            verbs: verbs.into_iter().map(ToOwned::to_owned).collect(),
            ..PolicyRule::default()
        })
        .collect();
    rules.sort_by(|a, b| (&a.api_groups, &a.resources).cmp(&(&b.api_groups, &b.resources)));
    rules
}

/// The role as an object.
pub fn cluster_role(description: &Description) -> ClusterRole {
    ClusterRole {
        metadata: named(description),
        rules: Some(policy_rules(description)),
        ..ClusterRole::default()
    }
}

/// Gives the role to the operator's service account.
pub fn cluster_role_binding(description: &Description, namespace: &str) -> ClusterRoleBinding {
    bound_to_account(description, namespace, named(description))
}

/// Gives the cluster role of that name to the operator's service account.
pub(crate) fn bound_to_account(
    description: &Description,
    namespace: &str,
    metadata: ObjectMeta,
) -> ClusterRoleBinding {
    ClusterRoleBinding {
        role_ref: RoleRef {
            api_group: Some(RBAC.to_owned()),
            kind: "ClusterRole".to_owned(),
            name: metadata.name.clone().unwrap_or_default(),
        },
        metadata,
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: description.name.clone(),
            namespace: Some(namespace.to_owned()),
            ..Subject::default()
        }]),
    }
}

/// The identity the operator runs as.
pub fn service_account(description: &Description, namespace: &str) -> ServiceAccount {
    ServiceAccount {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            ..named(description)
        },
        ..ServiceAccount::default()
    }
}

/// Name and labels that every object of the operator carries.
pub(crate) fn named(description: &Description) -> ObjectMeta {
    ObjectMeta {
        name: Some(description.name.clone()),
        labels: Some(labels(description)),
        ..ObjectMeta::default()
    }
}

pub(crate) fn labels(description: &Description) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", description.name.as_str()),
        ("app.kubernetes.io/managed-by", "windlass"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

/// The labels by which the operator's pods are found.
pub(crate) fn selector(description: &Description) -> BTreeMap<String, String> {
    let mut labels = labels(description);
    labels.retain(|key, _| key.ends_with("/name"));
    labels
}
