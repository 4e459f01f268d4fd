//! The Services and EndpointSlices as they are, and news of them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::reflector::{self, Lookup};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use windlass::handle::{Access, Verb};

use super::route::SERVICE_NAME;

/// Changes that come closer together than this are taken in at once.
const TOGETHER: Duration = Duration::from_millis(20);

/// What is known of Services.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// All Services.
    pub services: Vec<Arc<Service>>,
    /// All EndpointSlices.
    pub slices: Vec<Arc<EndpointSlice>>,
}

/// What watching needs to be allowed.
pub(super) fn grants() -> [Access; 2] {
    let verbs = [Verb::Get, Verb::List, Verb::Watch];
    [
        Access::of::<Service>(verbs),
        Access::of::<EndpointSlice>(verbs),
    ]
}

/// Namespace and name of the Service that a slice is of.
pub(crate) fn service_of(slice: &EndpointSlice) -> Option<(&str, &str)> {
    let name = slice.metadata.labels.as_ref()?.get(SERVICE_NAME)?;
    Some((slice.metadata.namespace.as_deref()?, name))
}

/// Keeps `pictures` up to date for as long as the future is polled.
pub(super) async fn watch(client: Client, pictures: &watch::Sender<Picture>) {
    let (changed, mut news) = watch::channel(());
    let (services, watching_services) = follow::<Service>(client.clone(), changed.clone());
    let (slices, watching_slices) = follow::<EndpointSlice>(client, changed);
    let composing = async {
        let both = futures::future::join(services.wait_until_ready(), slices.wait_until_ready());
        let _ = both.await;
        loop {
            news.mark_unchanged();
            let mut picture = Picture {
                services: services.state(),
                slices: slices.state(),
            };
            // A store has no order of its own.
            picture.services.sort_by_key(|object| key(&object.metadata));
            picture.slices.sort_by_key(|object| key(&object.metadata));
            pictures.send_replace(picture);
            if news.changed().await.is_err() {
                return;
            }
            tokio::time::sleep(TOGETHER).await;
        }
    };
    futures::join!(watching_services, watching_slices, composing);
}

fn key(metadata: &kube::core::ObjectMeta) -> (Option<String>, Option<String>) {
    (metadata.namespace.clone(), metadata.name.clone())
}

fn follow<K>(
    client: Client,
    changed: watch::Sender<()>,
) -> (reflector::Store<K>, impl Future<Output = ()> + Send)
where
    K: kube::Resource<DynamicType = ()> + Lookup<DynamicType = ()>,
    K: Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let events = watcher(Api::<K>::all(client), watcher::Config::default()).default_backoff();
    let following = async move {
        let mut events = std::pin::pin!(reflector::reflector(writer, events));
        while let Some(event) = events.next().await {
            match event {
                Ok(_) => changed.send_modify(|()| {}),
                Err(error) => tracing::debug!(%error, "a watch of the network was broken"),
            }
        }
    };
    (store, following)
}
