//! Bringing an operator's kinds into a cluster before the operator starts.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use windlass::Operator;

/// How long a definition may take to be served.
const ESTABLISH_LIMIT: Duration = Duration::from_secs(30);

/// Applies the operator's definitions and waits until each is served.
pub(crate) async fn install(client: &Client, operator: &Operator) -> kube::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("windlass").force();
    for definition in operator.crds() {
        definitions
            .patch(&definition.name_any(), &params, &Patch::Apply(&definition))
            .await?;
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

/// The user an operator is: the `ServiceAccount` its manifests give it.
pub(crate) fn user_of(operator: &Operator) -> String {
    let name = operator.name();
    format!("system:serviceaccount:{name}-system:{name}")
}
