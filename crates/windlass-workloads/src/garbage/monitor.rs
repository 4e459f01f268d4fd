//! Watching one kind, metadata only, and telling the collector what is seen.
//!
//! A watch that breaks is begun anew with a full list; objects that are not in it went meanwhile.

use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use kube::runtime::watcher;
use tokio::sync::mpsc::UnboundedSender;

use crate::resource::{GroupKind, Metadata, Resource};

/// What was seen of a kind.
#[derive(Debug)]
pub(crate) enum Sight {
    /// A full list begins.
    Listing,
    /// An object that is in the list.
    Listed(Box<Metadata>),
    /// The list is complete.
    Complete,
    /// An object is new or has changed.
    Changed(Box<Metadata>),
    /// An object is gone.
    Gone(Box<Metadata>),
    /// The kind is not served, or not any more.
    Unserved,
}

const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// Watches all objects of a kind, until nobody listens.
pub(crate) async fn monitor(
    client: Client,
    resource: Resource,
    sights: UnboundedSender<(GroupKind, Sight)>,
) {
    let kind = resource.group_kind();
    // One request for the list and what follows it: there are many kinds.
    let config = watcher::Config::default().streaming_lists();
    let events = watcher::watcher(resource.everywhere(client), config);
    let mut events = std::pin::pin!(events);
    let mut delay = FIRST_DELAY;
    while let Some(event) = events.next().await {
        let sight = match event {
            Ok(event) => {
                delay = FIRST_DELAY;
                match event {
                    watcher::Event::Init => Sight::Listing,
                    watcher::Event::InitApply(object) => Sight::Listed(Box::new(object)),
                    watcher::Event::InitDone => Sight::Complete,
                    watcher::Event::Apply(object) => Sight::Changed(Box::new(object)),
                    watcher::Event::Delete(object) => Sight::Gone(Box::new(object)),
                }
            }
            Err(error) => {
                tracing::debug!(resource = resource.name(), %error, "watch is begun anew");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(LONGEST_DELAY);
                if !is_not_found(&error) {
                    continue;
                }
                Sight::Unserved
            }
        };
        if sights.send((kind.clone(), sight)).is_err() {
            return;
        }
    }
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
