//! Services as background tasks of a node.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;
use tokio::sync::{mpsc, watch};
use windlass::{
    Error, Operator, Result,
    handle::{Access, Verb},
    run::TaskContext,
};

use super::bridge::Bridge;
use super::picture::{self, Picture};
use super::proxy::Trouble;
use super::{nft, proxy};
use crate::dns;

/// The longest note the API allows, in bytes.
const LONGEST: usize = 1024;

/// Lets a node translate the addresses of Services for the pods on a bridge, and answer for names.
#[must_use]
pub fn translating(operator: Operator, bridge: &Bridge) -> Operator {
    let (pictures, _) = watch::channel(Picture::default());
    let pictures = Arc::new(pictures);
    let (names, gateway) = (pictures.clone(), bridge.gateway());
    let bridge = bridge.clone();
    operator
        .task("services", picture::grants(), move |task| {
            let (pictures, bridge) = (pictures.clone(), bridge.clone());
            async move {
                let mut news = pictures.subscribe();
                let keeping = async {
                    // What was true before the first look is left as it is.
                    first(&mut news).await;
                    nft::keep(&bridge, news).await.map_err(Error::other)
                };
                Box::pin(until_stopped(&task, watching(&task, &pictures, keeping))).await
            }
        })
        .task("names", [], move |task| {
            let names = names.clone();
            async move {
                let mut news = names.subscribe();
                let serving = async {
                    first(&mut news).await;
                    let address = dns::address(gateway);
                    dns::serve(address, news).await.map_err(Error::other)
                };
                until_stopped(&task, serving).await
            }
        })
}

/// Lets a node listen on the addresses of Services.
#[must_use]
pub fn listening(operator: Operator) -> Operator {
    let grants = picture::grants()
        .into_iter()
        .chain([Access::of::<Event>([Verb::Create])]);
    operator.task("services", grants, |task| async move {
        let (pictures, news) = watch::channel(Picture::default());
        let (troubles, mut told) = mpsc::unbounded_channel();
        let telling = async {
            while let Some(trouble) = told.recv().await {
                tell(&task, &trouble).await;
            }
        };
        let keeping = async {
            futures::join!(proxy::keep(news, troubles), telling);
            Ok(())
        };
        Box::pin(until_stopped(&task, watching(&task, &pictures, keeping))).await
    })
}

async fn first(news: &mut watch::Receiver<Picture>) {
    if news.borrow().services.is_empty() {
        let _ = news.changed().await;
    }
}

/// Does something with the pictures while they are kept up to date.
async fn watching(
    task: &TaskContext,
    pictures: &watch::Sender<Picture>,
    something: impl Future<Output = Result<()>>,
) -> Result<()> {
    tokio::select! {
        biased;
        () = picture::watch(task.client.clone(), pictures) => Ok(()),
        done = something => done,
    }
}

async fn until_stopped(task: &TaskContext, work: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::select! {
        biased;
        () = task.stopping.cancelled() => Ok(()),
        done = work => done,
    }
}

/// Tells people about a Service; best effort.
async fn tell(task: &TaskContext, trouble: &Trouble) {
    let events: Api<Event> = Api::namespaced(task.client.clone(), &trouble.namespace);
    let end = trouble.message.floor_char_boundary(LONGEST);
    let suffix = task.environment.random.suffix(10);
    let event = Event {
        metadata: ObjectMeta {
            name: Some(format!("{}.{suffix}", trouble.service)),
            namespace: Some(trouble.namespace.clone()),
            ..ObjectMeta::default()
        },
        action: Some(trouble.reason.to_owned()),
        event_time: Some(task.environment.clock.micro_time()),
        note: Some(trouble.message[..end].to_owned()),
        reason: Some(trouble.reason.to_owned()),
        regarding: Some(ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Service".to_owned()),
            name: Some(trouble.service.clone()),
            namespace: Some(trouble.namespace.clone()),
            uid: trouble.uid.clone(),
            ..ObjectReference::default()
        }),
        reporting_controller: Some("windlass.dev/services".to_owned()),
        reporting_instance: Some("windlass".to_owned()),
        type_: Some("Warning".to_owned()),
        ..Event::default()
    };
    if let Err(error) = events.create(&PostParams::default(), &event).await {
        tracing::debug!(%error, service = trouble.service, "cannot write an event");
    }
}
