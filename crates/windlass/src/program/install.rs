//! `install` and `uninstall`: the operator's CRDs.

use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, ResourceExt, api::DeleteParams};

use super::print;
use crate::{Error, Operator, Result};

#[derive(Debug, Args)]
pub(super) struct Install {
    /// Install also what breaks objects or clients that are there.
    #[arg(long)]
    force: bool,
}

pub(super) async fn install(operator: &Operator, options: &Install) -> Result<()> {
    let client = Client::try_default().await?;
    for line in operator.install(&client, options.force).await? {
        print(&format!("{line}\n"))?;
    }
    Ok(())
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
