//! Watches one kind, metadata only, and reports to the collector what it shows.
//!
//! A watch that breaks starts again with a full list; objects that are not in it went meanwhile.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use kube::runtime::watcher;
use tokio::sync::mpsc::UnboundedSender;

use super::graph::{Node, Uid};
use super::ownership::Ownership;
use crate::resource::{GroupKind, Resource};

/// What was seen of a kind.
#[derive(Debug)]
pub(crate) enum Sight {
    /// A full list begins.
    Listing,
    /// An object that is in the list.
    Listed(Node),
    /// The list is complete.
    Complete,
    /// An object is new or has changed.
    Changed(Node),
    /// An object is gone.
    Gone { uid: Uid, name: String },
    /// The kind is not served, or not any more.
    Unserved,
}

const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// Watches all objects of a kind, until nobody listens.
pub(crate) async fn monitor(
    client: Client,
    resource: Resource,
    sights: UnboundedSender<(Arc<GroupKind>, Sight)>,
) {
    let kind = Arc::new(resource.group_kind());
    let report = |sight| sights.send((Arc::clone(&kind), sight)).is_ok();
    // One request for the list and what follows it: there are many kinds.
    let config = watcher::Config::default().streaming_lists();
    let events = watcher::watcher(resource.everywhere::<Ownership>(client), config);
    let mut events = std::pin::pin!(events);
    let mut delay = FIRST_DELAY;
    while let Some(event) = events.next().await {
        let sight = match event {
            Ok(event) => {
                delay = FIRST_DELAY;
                sight(&kind, event)
            }
            Err(error) => {
                tracing::debug!(resource = resource.name(), %error, "watch failed, starting it again");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(LONGEST_DELAY);
                is_not_found(&error).then_some(Sight::Unserved)
            }
        };
        if sight.is_some_and(|sight| !report(sight)) {
            return;
        }
    }
}

/// What an event shows; nothing of an object without a uid or a name.
fn sight(kind: &GroupKind, event: watcher::Event<Ownership>) -> Option<Sight> {
    let node = |object: Ownership| Node::new(kind.clone(), object.metadata);
    Some(match event {
        watcher::Event::Init => Sight::Listing,
        watcher::Event::InitApply(object) => Sight::Listed(node(object)?),
        watcher::Event::InitDone => Sight::Complete,
        watcher::Event::Apply(object) => Sight::Changed(node(object)?),
        watcher::Event::Delete(object) => Sight::Gone {
            uid: object.metadata.uid?,
            name: object.metadata.name?,
        },
    })
}

fn is_not_found(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    let (InitialListFailed(kube::Error::Api(status))
    | WatchStartFailed(kube::Error::Api(status))
    | WatchFailed(kube::Error::Api(status))
    | WatchError(status)) = error
    else {
        return false;
    };
    status.code == 404
}
