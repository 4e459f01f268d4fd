//! Bringing an operator into a cluster before it starts: its kinds, who it is, and what it may do.
//!
//! An operator runs as a `ServiceAccount` of its own with the role that follows from its
//! declaration, and nothing else: what it did not declare it is refused, here as anywhere.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Subject};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass::Operator;
use windlass::manifests::{Description, Installation, Reach, install, role, webhook};
use windlass_apiserver::Identity;

/// How long a definition may take to be served.
const ESTABLISH_LIMIT: Duration = Duration::from_secs(30);

/// The namespace of what belongs to the cluster itself.
pub(crate) const SYSTEM_NAMESPACE: &str = "kube-system";

/// A `ServiceAccount`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Account {
    /// The one that an operator's manifests give it.
    pub(crate) fn of(operator: &Operator) -> Self {
        Self {
            namespace: Installation::namespace_of(operator.name()),
            name: operator.name().to_owned(),
        }
    }

    /// The one of an operator that is a part of the cluster.
    pub(crate) fn of_system(operator: &Operator) -> Self {
        Self {
            namespace: SYSTEM_NAMESPACE.to_owned(),
            name: operator.name().to_owned(),
        }
    }

    /// What it is to the API server.
    pub(crate) fn identity(&self) -> Identity {
        Identity::service_account(&self.namespace, &self.name)
    }

    /// The user it is to the API server.
    pub(crate) fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

/// Applies the operator's definitions and waits until each is served.
pub(crate) async fn install(client: &Client, operator: &Operator) -> kube::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in operator.crds() {
        apply(&definitions, &definition).await?;
    }
    for definition in operator.crds() {
        let name = definition.name_any();
        let established = kube::runtime::wait::await_condition(
            definitions.clone(),
            &name,
            kube::runtime::wait::conditions::is_crd_established(),
        );
        let waited = tokio::time::timeout(ESTABLISH_LIMIT, established).await;
        if !matches!(waited, Ok(Ok(_))) {
            let status = kube::core::Status::failure(
                &format!("the definition {name} was not served in time"),
                "Timeout",
            );
            return Err(kube::Error::Api(status.boxed()));
        }
    }
    Ok(())
}

/// Makes the account, and gives it the operator's role.
pub(crate) async fn admit(
    client: &Client,
    operator: &Operator,
    account: &Account,
) -> kube::Result<()> {
    let description = operator.description();
    let namespace = &account.namespace;
    if namespace != SYSTEM_NAMESPACE {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        apply(&namespaces, &install::namespace_of(&description, namespace)).await?;
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    apply(&accounts, &role::service_account(&description, namespace)).await?;
    let binding = role::cluster_role_binding(&description, namespace);
    give_role(client, &description, &binding).await?;
    register(client, &description, namespace).await
}

/// Tells the API server of the operator's webhooks, as its manifests would.
async fn register(client: &Client, description: &Description, namespace: &str) -> kube::Result<()> {
    if !description.has_webhooks() {
        return Ok(());
    }
    let reach = Reach::Service(namespace.to_owned());
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    apply(&secrets, &webhook::secret(description, namespace)).await?;
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    apply(&services, &webhook::service(description, namespace)).await?;
    if let Some(configuration) = webhook::mutating(description, &reach) {
        apply(&Api::all(client.clone()), &configuration).await?;
    }
    if let Some(configuration) = webhook::validating(description, &reach) {
        apply(&Api::all(client.clone()), &configuration).await?;
    }
    Ok(())
}

/// Gives a user the operator's role.
pub(crate) async fn admit_user(
    client: &Client,
    operator: &Operator,
    user: &str,
) -> kube::Result<()> {
    let description = operator.description();
    let mut binding = role::cluster_role_binding(&description, SYSTEM_NAMESPACE);
    binding.subjects = Some(vec![Subject {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: "User".to_owned(),
        name: user.to_owned(),
        ..Subject::default()
    }]);
    give_role(client, &description, &binding).await
}

async fn give_role(
    client: &Client,
    of: &Description,
    binding: &ClusterRoleBinding,
) -> kube::Result<()> {
    give_rules(client, of).await?;
    apply(&Api::all(client.clone()), binding).await
}

/// Makes the role hold these rules.
pub(crate) async fn give_rules(client: &Client, of: &Description) -> kube::Result<()> {
    let roles: Api<ClusterRole> = Api::all(client.clone());
    apply(&roles, &role::cluster_role(of)).await
}

async fn apply<K>(api: &Api<K>, object: &K) -> kube::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let params = PatchParams::apply("windlass").force();
    api.patch(&object.name_any(), &params, &Patch::Apply(object))
        .await
        .map(|_| ())
}
