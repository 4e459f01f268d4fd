//! The state of a cluster in a form in which two runs can be compared: see [`windlass_explore::state`].

use kube::api::{DynamicObject, ListParams};
use kube::discovery::{Discovery, verbs};
use kube::{Api, Client};
use windlass_explore::state::{Object, is_history, lines};

/// Kinds that tell what happened, not what is.
const NOT_STATE: &[&str] = &["Event", "Lease"];

/// Every object, as sorted lines: `kind namespace/name` and its content. Fields of these names are left
/// out beside those that are different in every run.
pub(super) async fn of(client: &Client, fleeting: &[String]) -> kube::Result<Vec<String>> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let mut objects: Vec<Object> = Vec::new();
    for group in discovery.groups_alphabetical() {
        for (resource, capabilities) in group.recommended_resources() {
            if !capabilities.supports_operation(verbs::LIST)
                || NOT_STATE.contains(&resource.kind.as_str())
            {
                continue;
            }
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            for object in api.list(&ListParams::default()).await?.items {
                let value = serde_json::to_value(&object).map_err(kube::Error::SerdeError)?;
                if !is_history(&resource.kind, &value) {
                    objects.push(Object {
                        of: resource.kind.clone(),
                        kind: resource.kind.clone(),
                        value,
                    });
                }
            }
        }
    }
    Ok(lines(objects, fleeting))
}
