//! `install` and `uninstall`: the operator's CRDs.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};

use super::print;
use crate::{Error, Operator, Result};

/// How often and how long the server is asked whether a CRD is served yet.
const POLL: Duration = Duration::from_millis(100);
const POLLS: u32 = 300;

pub(super) async fn install(operator: &Operator) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(Client::try_default().await?);
    let params = PatchParams::apply(operator.name()).force();
    for crd in operator.crds() {
        let name = crd.name_any();
        let object = format!("customresourcedefinitions.apiextensions.k8s.io {name}");
        let applied = crds.patch(&name, &params, &Patch::Apply(&crd)).await;
        applied.map_err(|error| Error::api("apply", object.clone(), error))?;
        established(&crds, &name, &object).await?;
        print(&format!("installed {name}\n"))?;
    }
    Ok(())
}

/// Waits until objects of the kind can be created.
async fn established(crds: &Api<CustomResourceDefinition>, name: &str, object: &str) -> Result<()> {
    for _ in 0..POLLS {
        let crd = crds
            .get(name)
            .await
            .map_err(|error| Error::api("get", object, error))?;
        let conditions = crd
            .status
            .and_then(|status| status.conditions)
            .unwrap_or_default();
        if conditions
            .iter()
            .any(|one| one.type_ == "Established" && one.status == "True")
        {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
    Err(Error::other(format!(
        "{object} was applied but is not served yet"
    )))
}

pub(super) async fn uninstall(operator: &Operator) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(Client::try_default().await?);
    for crd in operator.crds() {
        let name = crd.name_any();
        match crds.delete(&name, &DeleteParams::default()).await {
            Ok(_) => print(&format!("removed {name}\n"))?,
            Err(kube::Error::Api(status)) if status.code == 404 => {
                print(&format!("{name} was not installed\n"))?;
            }
            Err(error) => {
                let object = format!("customresourcedefinitions.apiextensions.k8s.io {name}");
                return Err(Error::api("delete", object, error));
            }
        }
    }
    Ok(())
}
