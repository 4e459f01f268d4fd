//! Requests for objects of any kind, with the operator's name as field manager.

use std::sync::Arc;

use http::{HeaderValue, header::CONTENT_TYPE};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::Value;
use tracing::info;

use super::rehearsal;
use crate::{
    Error, Key, Result,
    cache::{Caches, VALUES, Wire},
    kind::KindInfo,
};

/// Sends requests and names verb and object in what goes wrong.
///
/// Patches ask the server not to look for unknown and duplicate fields: what it finds would come as
/// warnings, which have no reader here, and it parses every apply a second time to find them.
#[derive(Clone)]
pub(crate) struct Requests {
    pub(crate) client: Client,
    manager: Arc<str>,
    /// In a rehearsal, what is there: to tell what would change.
    rehearsal: Option<Arc<Caches>>,
}

impl Requests {
    pub(crate) fn new(client: Client, manager: Arc<str>) -> Self {
        Self {
            client,
            manager,
            rehearsal: None,
        }
    }

    /// Requests that change nothing, and tell what they would change.
    pub(crate) fn rehearsing(self, caches: &Arc<Caches>) -> Self {
        Self {
            rehearsal: Some(Arc::clone(caches)),
            ..self
        }
    }

    /// Server-side apply: these fields shall have these values, whoever set them before.
    pub(crate) async fn apply(&self, kind: &KindInfo, key: &Key, body: &Value) -> Result<Value> {
        let params = PatchParams::apply(&self.manager).force();
        let params = params.validation_ignore();
        let api = self.api(kind, key.namespace());
        let answer = api.patch(key.name(), &params, &Patch::Apply(body)).await;
        self.value_of(answer, "apply", kind, key)
    }

    /// JSON patch of an object.
    ///
    /// The API server gives changed values to a field manager of updates, whoever applied them
    /// before. That one has a name of its own, so that what it owns can be told from what a
    /// reconciler updates itself.
    pub(crate) async fn operate(
        &self,
        kind: &KindInfo,
        key: &Key,
        operations: &[Value],
    ) -> Result<Value> {
        let params = PatchParams {
            field_manager: Some(format!("{}{VALUES}", self.manager)),
            ..PatchParams::default()
        };
        let path = Wire::url_path(&kind.api_resource(), key.namespace());
        let request = kube::core::Request::new(path).patch(
            key.name(),
            &params.validation_ignore(),
            // The client knows this form of a patch only with another dependency.
            &Patch::Merge(operations),
        );
        let answer = match request.map_err(kube::Error::BuildRequest) {
            Ok(mut request) => {
                let kind = HeaderValue::from_static("application/json-patch+json");
                request.headers_mut().insert(CONTENT_TYPE, kind);
                request.extensions_mut().insert("patch");
                self.client.request(request).await
            }
            Err(error) => Err(error),
        };
        // It takes the place of an apply.
        self.value_of(answer, "apply", kind, key)
    }

    /// Reads an object live, past the cache.
    ///
    /// A 404 that the API server gives no reason for says nothing about the object: it is that of a
    /// proxy, or the kind is not served now.
    pub(crate) async fn get(&self, kind: &KindInfo, key: &Key) -> Result<Option<Value>> {
        let answer = self.api(kind, key.namespace()).get(key.name()).await;
        match answer {
            Ok(object) => Ok(Some(object.value)),
            Err(kube::Error::Api(status)) if status.reason == "NotFound" => Ok(None),
            Err(error) => Err(Error::api("get", format!("{kind} {key}"), error)),
        }
    }

    pub(crate) async fn create(&self, kind: &KindInfo, key: &Key, body: Value) -> Result<Value> {
        let answer = self
            .api(kind, key.namespace())
            .create(&self.post(), &Wire::new(body))
            .await;
        self.value_of(answer, "create", kind, key)
    }

    /// Strategic merge patch of an object: entries of lists that have a merge key are merged.
    pub(crate) async fn merge_entries(
        &self,
        kind: &KindInfo,
        key: &Key,
        body: &Value,
    ) -> Result<Value> {
        let api = self.api(kind, key.namespace());
        let patch = Patch::Strategic(body);
        let answer = api.patch(key.name(), &self.patch(), &patch).await;
        self.value_of(answer, "patch", kind, key)
    }

    /// JSON merge patch of an object or, with a subresource, of that.
    pub(crate) async fn merge(
        &self,
        kind: &KindInfo,
        key: &Key,
        subresource: Option<&str>,
        body: &Value,
    ) -> Result<Value> {
        let params = self.patch();
        let api = self.api(kind, key.namespace());
        let patch = Patch::Merge(body);
        let answer = match subresource {
            Some(subresource) => {
                api.patch_subresource(subresource, key.name(), &params, &patch)
                    .await
            }
            None => api.patch(key.name(), &params, &patch).await,
        };
        self.value_of(answer, "patch", kind, key)
    }

    pub(crate) async fn replace(
        &self,
        kind: &KindInfo,
        key: &Key,
        subresource: Option<&str>,
        body: Value,
    ) -> Result<Value> {
        let api = self.api(kind, key.namespace());
        let body = Wire::new(body);
        let answer = match subresource {
            Some(subresource) => {
                api.replace_subresource(subresource, key.name(), &self.post(), &body)
                    .await
            }
            None => api.replace(key.name(), &self.post(), &body).await,
        };
        self.value_of(answer, "update", kind, key)
    }

    /// Posts to a subresource; the answer is whatever kind the subresource has.
    pub(crate) async fn post_to(
        &self,
        kind: &KindInfo,
        key: &Key,
        subresource: &str,
        body: &Value,
    ) -> Result<Value> {
        let api = self.api(kind, key.namespace());
        let answer = api
            .create_subresource(subresource, key.name(), &self.post(), body)
            .await;
        answer.map_err(|error| Error::api("create", format!("{kind}/{subresource} {key}"), error))
    }

    /// Deletes an object. True if it existed.
    pub(crate) async fn delete(
        &self,
        kind: &KindInfo,
        key: &Key,
        params: &DeleteParams,
    ) -> Result<bool> {
        match self
            .api(kind, key.namespace())
            .delete(key.name(), params)
            .await
        {
            Ok(_) => {
                self.tell("delete", kind, key, None);
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(Error::api("delete", format!("{kind} {key}"), error)),
        }
    }

    pub(crate) fn api(&self, kind: &KindInfo, namespace: Option<&str>) -> Api<Wire> {
        let resource = kind.api_resource();
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Deletes every object of a namespace (of all, without one) that matches.
    pub(crate) async fn delete_all(
        &self,
        kind: &KindInfo,
        namespace: Option<&str>,
        params: &DeleteParams,
        which: &ListParams,
    ) -> Result<()> {
        let api = self.api(kind, namespace);
        let answer = api.delete_collection(params, which).await;
        answer.map_err(|error| Error::api("delete", format!("every {kind}"), error))?;
        if self.rehearsal.is_some() {
            info!("dry run: would delete every {kind} that matches {which:?}");
        }
        Ok(())
    }

    fn patch(&self) -> PatchParams {
        let params = PatchParams {
            field_manager: Some(self.manager.to_string()),
            ..PatchParams::default()
        };
        params.validation_ignore()
    }

    fn post(&self) -> PostParams {
        PostParams {
            field_manager: Some(self.manager.to_string()),
            ..PostParams::default()
        }
    }

    fn value_of(
        &self,
        answer: kube::Result<Wire>,
        verb: &'static str,
        kind: &KindInfo,
        key: &Key,
    ) -> Result<Value> {
        match answer {
            Ok(wire) => {
                self.tell(verb, kind, key, Some(&wire.value));
                Ok(wire.value)
            }
            Err(error) => Err(Error::api(verb, format!("{kind} {key}"), error)),
        }
    }

    /// In a rehearsal, says what a write would have done.
    fn tell(&self, verb: &str, kind: &KindInfo, key: &Key, after: Option<&Value>) {
        let Some(caches) = &self.rehearsal else {
            return;
        };
        if let (Some(after), Some(before)) = (after, caches.shown(kind, key)) {
            let changes = rehearsal::changes(kind, &before, after);
            info!("dry run: would {verb} {kind} {key}: {}", changes.join("; "));
        } else {
            info!("dry run: would {verb} {kind} {key}");
        }
    }
}
