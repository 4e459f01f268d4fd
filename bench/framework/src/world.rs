//! The API server that all operators share, and what the benchmark does to it.

use std::time::Duration;

use bench_framework::{Widget, WidgetSpec, deployment};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::{
    api::apps::v1::Deployment,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{Anything, count::Requests};

const NAMESPACE: &str = "default";
/// How many requests are sent at once.
const AT_ONCE: usize = 16;
/// The field manager of the operator on Windlass, which keeps what it applied itself.
const MANAGER: &str = "widgets";

/// The API server.
pub(crate) struct World {
    client: Client,
}

impl World {
    /// Installs the definition of widgets.
    pub(crate) async fn new(client: Client) -> Anything<Self> {
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let crd = Widget::crd();
        let params = PatchParams::apply("bench").force();
        crds.patch(&crd.name_any(), &params, &Patch::Apply(&crd))
            .await?;
        let world = Self { client };
        while world.widgets().list(&ListParams::default()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(world)
    }

    pub(crate) fn widgets(&self) -> Api<Widget> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Removes everything that an operator left.
    pub(crate) async fn clear(&self) -> Anything<()> {
        let (how, all) = (DeleteParams::default(), ListParams::default());
        self.widgets().delete_collection(&how, &all).await?;
        self.deployments().delete_collection(&how, &all).await?;
        let one = ListParams::default().limit(1);
        while !self.widgets().list(&one).await?.items.is_empty()
            || !self.deployments().list(&one).await?.items.is_empty()
        {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }

    pub(crate) async fn create_widgets(&self, count: u32) -> Anything<()> {
        let api = self.widgets();
        self.all(count, |nth| {
            let api = api.clone();
            async move {
                let spec = WidgetSpec {
                    replicas: 1,
                    image: "widget:1".to_owned(),
                };
                let widget = Widget::new(&name(nth), spec);
                api.create(&PostParams::default(), &widget).await.map(drop)
            }
        })
        .await
    }

    pub(crate) async fn change_widgets(&self, count: u32, image: &str) -> Anything<()> {
        let api = self.widgets();
        self.all(count, |nth| {
            let api = api.clone();
            let patch = Patch::Merge(json!({ "spec": { "image": image } }));
            async move {
                let params = PatchParams::default();
                api.patch(&name(nth), &params, &patch).await.map(drop)
            }
        })
        .await
    }

    /// Makes Deployments that belong to nobody; answers how large one is as JSON.
    pub(crate) async fn fill(&self, count: u32) -> Anything<usize> {
        let api = self.deployments();
        self.all(count, |nth| {
            let (api, params) = (api.clone(), PatchParams::apply(MANAGER).force());
            async move {
                let name = format!("cached-{nth}");
                let one = deployment(&name, 1, "widget:1");
                api.patch(&name, &params, &Patch::Apply(&one))
                    .await
                    .map(drop)
            }
        })
        .await?;
        let request =
            kube::api::Request::new(format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments"));
        let request = request.get("cached-0", &kube::api::GetParams::default())?;
        Ok(self.client.request_text(request).await?.len())
    }

    async fn all<F>(&self, count: u32, each: impl Fn(u32) -> F) -> Anything<()>
    where
        F: Future<Output = kube::Result<()>>,
    {
        let requests = stream::iter((0..count).map(each)).buffer_unordered(AT_ONCE);
        Ok(requests.try_collect::<()>().await?)
    }

    /// What the API server has counted of requests that only the operator sends.
    pub(crate) async fn requests(&self) -> Anything<Requests> {
        let request = kube::api::Request::new("/metrics");
        let request = request.list(&ListParams::default())?;
        Ok(Requests::read(&self.client.request_text(request).await?))
    }
}

/// The name of the nth widget.
pub(crate) fn name(nth: u32) -> String {
    format!("widget-{nth}")
}
