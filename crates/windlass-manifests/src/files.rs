//! Which object is in which file of `config/`, by the names that users of kubebuilder know.

use crate::{
    Description, Manifest, leader, metrics,
    role::{cluster_role, cluster_role_binding, service_account},
    users,
    yaml::Error,
};

/// Files below `config/` and the objects in them: everything but namespace, Deployment and samples.
pub(crate) fn objects(
    description: &Description,
    namespace: &str,
) -> Result<Vec<(String, Vec<Manifest>)>, Error> {
    let mut files = Vec::new();
    for crd in &description.crds {
        let (group, plural) = (&crd.spec.group, &crd.spec.names.plural);
        files.push((
            format!("crd/bases/{group}_{plural}.yaml"),
            vec![Manifest::of(crd)?],
        ));
    }
    let rbac = |name: &str, manifest: Manifest| (format!("rbac/{name}.yaml"), vec![manifest]);
    let (leader, leader_binding) = leader::role(description, namespace);
    let (auth, auth_binding) = metrics::auth_role(description, namespace);
    let account = service_account(description, namespace);
    let binding = cluster_role_binding(description, namespace);
    files.extend([
        rbac("service_account", Manifest::of(&account)?),
        rbac("role", Manifest::of(&cluster_role(description))?),
        rbac("role_binding", Manifest::of(&binding)?),
        rbac("leader_election_role", Manifest::of(&leader)?),
        rbac(
            "leader_election_role_binding",
            Manifest::of(&leader_binding)?,
        ),
        rbac("metrics_auth_role", Manifest::of(&auth)?),
        rbac("metrics_auth_role_binding", Manifest::of(&auth_binding)?),
        rbac(
            "metrics_reader_role",
            Manifest::of(&metrics::reader_role(description))?,
        ),
    ]);
    for crd in &description.crds {
        let kind = crd.spec.names.kind.to_lowercase();
        let roles = users::roles(description, crd);
        for ((user, _), role) in users::USERS.iter().zip(&roles) {
            files.push(rbac(&format!("{kind}_{user}_role"), Manifest::of(role)?));
        }
    }
    files.push((
        "default/metrics_service.yaml".to_owned(),
        vec![Manifest::of(&metrics::service(description, namespace))?],
    ));
    // The API server calls webhooks from outside all namespaces.
    let served: &[u16] = if description.has_webhooks() {
        &[crate::webhook::SERVING_PORT]
    } else {
        &[]
    };
    files.push((
        "network-policy/allow-traffic.yaml".to_owned(),
        vec![Manifest::of(&metrics::network_policy(
            description,
            namespace,
            served,
        ))?],
    ));
    Ok(files)
}
