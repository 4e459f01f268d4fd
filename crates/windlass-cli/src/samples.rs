//! Creating the bundled operators' samples, without kubectl.

use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::Scope;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt};

use crate::bundled::Bundled;
use crate::error::{Error, Result, doing};

/// How long a sample may take until everything in it runs.
const LIMIT: Duration = Duration::from_mins(1);

/// Applies an operator's sample and waits until it says that it is available.
pub(crate) async fn run(client: &Client, bundled: Bundled) -> Result<()> {
    for sample in bundled.operator().description().samples {
        let object: DynamicObject = serde_json::from_value(sample).map_err(|error| {
            let name = bundled.name();
            Error::Other(format!("cannot read the sample of {name}: {error}"))
        })?;
        let name = object.name_any();
        let kind = object.types.clone().unwrap_or_default();
        let shown = format!("{} {name}", kind.kind.to_lowercase());
        let gvk = GroupVersionKind::try_from(&kind)
            .map_err(|error| Error::Other(format!("the sample's {shown}: {error}")))?;
        let (resource, capabilities) = kube::discovery::pinned_kind(client, &gvk)
            .await
            .map_err(doing(format!("find the kind of {shown}")))?;
        let api: Api<DynamicObject> = match (capabilities.scope, object.namespace()) {
            (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(client.clone(), &namespace, &resource)
            }
            (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
        };
        let params = PatchParams::apply("windlass-sample").force();
        api.patch(&name, &params, &Patch::Apply(&object))
            .await
            .map_err(doing(format!("apply the sample's {shown}")))?;
        let available = await_condition(api, &name, |object: Option<&DynamicObject>| {
            object.is_some_and(is_available)
        });
        match tokio::time::timeout(LIMIT, available).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                return Err(Error::Other(format!(
                    "cannot wait for the sample's {shown}: {error}"
                )));
            }
            Err(_) => {
                return Err(Error::SampleNotAvailable {
                    operator: bundled.name().to_owned(),
                    seconds: LIMIT.as_secs(),
                });
            }
        }
    }
    Ok(())
}

/// Whether the object says so itself; one that has no conditions is as available as it gets.
fn is_available(object: &DynamicObject) -> bool {
    if let Some(conditions) = object.data["status"]["conditions"].as_array() {
        return conditions
            .iter()
            .any(|condition| condition["type"] == "Available" && condition["status"] == "True");
    }
    let status = object.data["status"].as_object();
    let told = status.is_some_and(|status| !status.is_empty());
    told || object.data.get("spec").is_none()
}
