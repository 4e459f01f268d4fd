//! The requests of the collector, each guarded against acting on another object than was judged.
//!
//! Changes are merge patches that carry the resourceVersion that was read (custom resources know
//! no other patch that would do); deletions carry uid and resourceVersion. A conflict means that
//! something changed since, and the object is judged again.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, Preconditions, PropagationPolicy,
};
use serde_json::{Value, json};

use super::verdict::Propagation;
use crate::resource::Metadata;

/// How many objects one page of a list has.
const PAGE: u32 = 500;

/// A request that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {object}: {source}")]
pub(crate) struct RequestError {
    verb: &'static str,
    object: String,
    #[source]
    source: kube::Error,
}

/// One object and the way to it.
pub(crate) struct Target {
    api: Api<Metadata>,
    name: String,
    /// `configmaps default/settings`, for people.
    shown: String,
}

impl Target {
    pub(crate) fn new(
        api: Api<Metadata>,
        resource: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Self {
        let shown = match namespace {
            Some(namespace) => format!("{resource} {namespace}/{name}"),
            None => format!("{resource} {name}"),
        };
        Self {
            api,
            name: name.to_owned(),
            shown,
        }
    }

    fn failed(&self, verb: &'static str) -> impl FnOnce(kube::Error) -> RequestError {
        let object = self.shown.clone();
        move |source| RequestError {
            verb,
            object,
            source,
        }
    }

    /// The object's metadata as the API server has it now; `None` if there is no such object.
    pub(crate) async fn metadata(&self) -> Result<Option<ObjectMeta>, RequestError> {
        let object = self
            .api
            .get_opt(&self.name)
            .await
            .map_err(self.failed("get"))?;
        Ok(object.map(|object| object.metadata))
    }

    /// Strikes owner references, or changes them, by giving all that stay.
    pub(crate) async fn set_owners(
        &self,
        meta: &ObjectMeta,
        owners: &[OwnerReference],
    ) -> Result<(), RequestError> {
        self.patch(meta, "ownerReferences", json!(owners)).await
    }

    /// Removes a finalizer.
    pub(crate) async fn remove_finalizer(
        &self,
        meta: &ObjectMeta,
        finalizer: &str,
    ) -> Result<(), RequestError> {
        let finalizers = meta.finalizers.as_deref().unwrap_or_default();
        let rest: Vec<&String> = finalizers
            .iter()
            .filter(|name| *name != finalizer)
            .collect();
        if rest.len() == finalizers.len() {
            return Ok(());
        }
        self.patch(meta, "finalizers", json!(rest)).await
    }

    async fn patch(
        &self,
        meta: &ObjectMeta,
        field: &str,
        value: Value,
    ) -> Result<(), RequestError> {
        let patch = json!({ "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            field: value,
        } });
        let patched = self
            .api
            .patch(&self.name, &PatchParams::default(), &Patch::Merge(&patch))
            .await;
        ignore_not_found(patched.map(drop)).map_err(self.failed("patch"))
    }

    /// Deletes the object as it was read.
    pub(crate) async fn delete(
        &self,
        meta: &ObjectMeta,
        propagation: Propagation,
    ) -> Result<(), RequestError> {
        let params = DeleteParams {
            propagation_policy: Some(match propagation {
                Propagation::Background => PropagationPolicy::Background,
                Propagation::Foreground => PropagationPolicy::Foreground,
                Propagation::Orphan => PropagationPolicy::Orphan,
            }),
            preconditions: Some(Preconditions {
                uid: meta.uid.clone(),
                resource_version: meta.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        let deleted = self.api.delete(&self.name, &params).await;
        ignore_not_found(deleted.map(drop)).map_err(self.failed("delete"))
    }
}

/// The metadata of every object, as the API server has it now; none of a kind that is not served.
pub(crate) async fn every(
    api: &Api<Metadata>,
    resource: &str,
) -> Result<Vec<ObjectMeta>, RequestError> {
    let mut params = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = match api.list_metadata(&params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(all),
            page => page.map_err(|source| RequestError {
                verb: "list",
                object: resource.to_owned(),
                source,
            })?,
        };
        all.extend(page.items.into_iter().map(|object| object.metadata));
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(all);
        }
    }
}

/// What is gone needs no change.
fn ignore_not_found(result: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other,
    }
}
