//! Emptying a namespace.
//!
//! Every kind that lives in namespaces is listed; what there is of it is deleted, all at once; and
//! what is still there afterwards has finalizers or a grace period to wait for.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::{DeleteParams, ListParams};

use crate::resource::{self, Resource};

/// What is left of a namespace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Remains {
    /// How many objects per resource (`pods.`).
    pub objects: BTreeMap<String, usize>,
    /// How many objects per finalizer.
    pub finalizers: BTreeMap<String, usize>,
    /// What could not be deleted, and why.
    pub failures: Vec<String>,
}

impl Remains {
    /// Whether nothing is left, for sure.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.failures.is_empty()
    }
}

/// Deletes everything in a namespace, and says what is left.
pub(crate) async fn empty(client: &Client, namespace: &str) -> Result<Remains, kube::Error> {
    let mut remains = Remains::default();
    for resource in resource::discover(client).await?.into_values() {
        if !resource.namespaced || !resource.allows(&["list", "delete"]) {
            continue;
        }
        if let Err(error) = empty_of(client, namespace, &resource, &mut remains).await {
            remains
                .failures
                .push(format!("{}: {error}", resource.name()));
        }
    }
    Ok(remains)
}

async fn empty_of(
    client: &Client,
    namespace: &str,
    resource: &Resource,
    remains: &mut Remains,
) -> Result<(), kube::Error> {
    let api = resource.within(client.clone(), namespace);
    let all = ListParams::default();
    let listed = api.list(&all).await?;
    if listed.items.is_empty() {
        return Ok(());
    }
    // One by one: deleting a collection is a permission of its own that a declaration cannot name
    // yet, and what is not declared must not be used.
    for object in &listed.items {
        let Some(name) = object.metadata.name.as_deref() else {
            continue;
        };
        if object.metadata.deletion_timestamp.is_some() {
            continue;
        }
        match api.delete(name, &DeleteParams::background()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other?),
        }
    }
    let left = api.list(&all).await?;
    if !left.items.is_empty() {
        remains
            .objects
            .insert(resource.name_with_group(), left.items.len());
    }
    for finalizer in left
        .items
        .iter()
        .flat_map(|object| object.metadata.finalizers.iter().flatten())
    {
        *remains.finalizers.entry(finalizer.clone()).or_default() += 1;
    }
    Ok(())
}
