//! `install` and `uninstall`: the operator's CRDs.

use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, ResourceExt, api::DeleteParams};
use serde_json::json;

use super::output::{Output, as_text};
use crate::{Error, Operator, Result};

#[derive(Debug, Args)]
pub(super) struct Install {
    /// Install also what breaks objects or clients that are there.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn install(operator: &Operator, options: &Install) -> Result<()> {
    let client = Client::try_default().await?;
    let lines = operator.install(&client, options.force).await?;
    options
        .output
        .print(&json!({"done": lines}), &as_text(&lines))
}

pub(super) async fn uninstall(operator: &Operator, output: Output) -> Result<()> {
    let (mut removed, mut absent) = (Vec::new(), Vec::new());
    let crds: Api<CustomResourceDefinition> = Api::all(Client::try_default().await?);
    for crd in operator.crds() {
        let name = crd.name_any();
        match crds.delete(&name, &DeleteParams::default()).await {
            Ok(_) => removed.push(name),
            Err(kube::Error::Api(status)) if status.code == 404 => absent.push(name),
            Err(error) => {
                let object = format!("customresourcedefinitions.apiextensions.k8s.io {name}");
                return Err(Error::api("delete", object, error));
            }
        }
    }
    let gone = removed.iter().map(|name| format!("removed {name}\n"));
    let never = absent
        .iter()
        .map(|name| format!("{name} was not installed\n"));
    let text: String = gone.chain(never).collect();
    output.print(&json!({"removed": removed, "absent": absent}), &text)
}
