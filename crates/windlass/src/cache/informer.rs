//! The watch that feeds a [`Store`].

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, pin_mut};
use kube::{
    Api, Client,
    runtime::watcher::{self, Event},
};
use tokio::time::Instant;
use tracing::{debug, warn};

use super::{Store, Wire};
use crate::Environment;

const FIRST_DELAY: Duration = Duration::from_millis(100);
const LAST_DELAY: Duration = Duration::from_secs(30);

/// Lists and watches for ever, telling the store what it sees.
pub(crate) async fn run(store: Arc<Store>, client: Client, environment: Environment) {
    let resource = store.kind.api_resource();
    let api: Api<Wire> = match &store.scope.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let config = watcher::Config {
        label_selector: store.scope.labels.clone(),
        field_selector: store.scope.fields.clone(),
        ..watcher::Config::default()
    };
    let events = watcher::watcher(api, config);
    pin_mut!(events);

    let syncing = || {
        environment
            .activity
            .busy(format!("first list of {}", store.kind))
    };
    let mut busy = Some(syncing());
    let mut delay = FIRST_DELAY;
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if !matches!(event, Event::Init) {
                    delay = FIRST_DELAY;
                }
                take(&store, event);
                if store.is_synced() {
                    busy = None;
                }
            }
            Err(error) => {
                let kind = &store.kind;
                match &error {
                    // The kind is not served (yet), or a watch was ended as it should be.
                    watcher::Error::WatchError(status) if status.code == 410 => {
                        debug!(%kind, "watch is too old, listing again");
                        continue;
                    }
                    error => warn!(%kind, %error, "watch failed, trying again in {delay:?}"),
                }
                // A first list that has not worked is work to do; a broken watch of a synced
                // cache is too, for what it would have shown.
                let at = Instant::now() + jittered(delay, &environment);
                let due = environment
                    .activity
                    .due(at, format!("watch of {kind}: {error}"));
                busy = None;
                tokio::time::sleep_until(at).await;
                if !store.is_synced() {
                    busy = Some(syncing());
                }
                drop(due);
                delay = (delay * 2).min(LAST_DELAY);
            }
        }
    }
    drop(busy);
}

fn take(store: &Store, event: Event<Wire>) {
    match event {
        Event::Init => store.list_begins(),
        Event::InitApply(object) | Event::Apply(object) => store.put(object.value),
        Event::InitDone => store.list_ends(),
        Event::Delete(object) => store.remove(object.value),
    }
}

/// Up to a quarter more, so that many operators do not come back at the same moment.
fn jittered(delay: Duration, environment: &Environment) -> Duration {
    let quarter = u64::try_from(delay.as_millis() / 4).unwrap_or(0);
    delay + Duration::from_millis(environment.random.below(quarter + 1))
}
