//! The cluster under test, and how to wait for it.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection to the cluster.
pub(crate) struct Cluster {
    pub(crate) client: Client,
}

impl Cluster {
    pub(crate) async fn connect(kubeconfig: &Path) -> Self {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .expect("a configuration");
        Self {
            client: Client::try_from(config).expect("a client"),
        }
    }

    /// A new namespace with its account, for one scenario.
    pub(crate) async fn namespace(&self, name: &str) -> Scene {
        println!("{name}");
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .expect("a new namespace");
        let scene = Scene {
            client: self.client.clone(),
            namespace: name.to_owned(),
        };
        scene
            .until::<ServiceAccount>("default", "its account exists", |_| true)
            .await;
        scene
    }
}

/// One scenario's namespace.
pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Scene {
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + serde::Serialize,
    {
        let object: K = serde_json::from_value(object).expect("a valid object");
        self.api()
            .create(&PostParams::default(), &object)
            .await
            .expect("created")
    }

    pub(crate) async fn patch<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        self.api()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("patched")
    }

    pub(crate) async fn delete<K>(&self, name: &str, how: &DeleteParams)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        self.api::<K>().delete(name, how).await.expect("deleted");
    }

    /// Waits until the object is there and as expected.
    pub(crate) async fn until<K>(&self, name: &str, what: &str, is: impl Fn(&K) -> bool) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let condition = |object: Option<&K>| object.is_some_and(&is);
        let found = tokio::time::timeout(PATIENCE, await_condition(self.api(), name, condition));
        if let Ok(found) = found.await {
            return found.expect("a watch").expect("an object");
        }
        panic!(
            "{name}: not {what} in time: {:#?}",
            self.api::<K>().get_opt(name).await
        )
    }

    /// Waits until the object is gone.
    pub(crate) async fn until_gone<K>(&self, name: &str)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let gone = |object: Option<&K>| object.is_none();
        if tokio::time::timeout(PATIENCE, await_condition(self.api(), name, gone))
            .await
            .is_err()
        {
            panic!(
                "{name}: not gone in time: {:#?}",
                self.api::<K>().get_opt(name).await
            );
        }
    }

    pub(crate) async fn pods(&self) -> Vec<Pod> {
        self.api()
            .list(&ListParams::default())
            .await
            .expect("pods")
            .items
    }

    pub(crate) async fn sets(&self) -> Vec<ReplicaSet> {
        self.api()
            .list(&ListParams::default())
            .await
            .expect("replica sets")
            .items
    }

    /// Waits until the roll-out has arrived.
    pub(crate) async fn until_rolled_out(&self, name: &str) -> Deployment {
        self.until(name, "rolled out", |deployment: &Deployment| {
            let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas);
            deployment.status.as_ref().is_some_and(|status| {
                status.observed_generation == deployment.metadata.generation
                    && status.updated_replicas == wanted
                    && status.replicas == wanted
                    && status.available_replicas == wanted
                    && reason(deployment, "Progressing") == "NewReplicaSetAvailable"
            })
        })
        .await
    }
}

/// A Deployment of `replicas` pods of one image.
pub(crate) fn web(replicas: i32, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web", "annotations": { "team": "blue" } },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": image }] },
            },
        },
    })
}

/// A patch that changes the image.
pub(crate) fn image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } } })
}

pub(crate) fn reason<'a>(deployment: &'a Deployment, type_: &str) -> &'a str {
    deployment
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .find(|condition| condition.type_ == type_)
        .and_then(|condition| condition.reason.as_deref())
        .unwrap_or_default()
}

pub(crate) fn annotation<'a, K: Resource>(object: &'a K, key: &str) -> &'a str {
    object
        .meta()
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(key))
        .map_or("", String::as_str)
}
