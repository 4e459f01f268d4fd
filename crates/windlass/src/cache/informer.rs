//! The watch that feeds a [`Store`].
//!
//! A watch begins with everything there is: as a stream where the server has that, in pages where
//! it has not. From then on it follows the changes; interrupted, it goes on where it was, and
//! begins anew only when the server says that this is too long ago. A kind that the server does
//! not know has no objects; it is asked for again now and then, so that a definition installed
//! later starts the watch, and one removed stops it.

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt, pin_mut};
use kube::{
    Api, Client,
    api::{ListParams, WatchEvent, WatchParams},
};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{debug, info, warn};

use super::{Store, Watched};
use crate::testing::Environment;

const FIRST_DELAY: Duration = Duration::from_millis(100);
const LAST_DELAY: Duration = Duration::from_secs(30);
/// How often a kind that is not served is asked for.
const ABSENCE: Duration = Duration::from_secs(5);
/// The server is asked to end a watch after this many seconds, and up to so many more, so that
/// many watches do not come back at the same moment. It is not long: a connection may be dead
/// without a word, and an idle one says nothing either; only the end that does not come shows it.
const WATCH_SECONDS: u64 = 35;
const WATCH_SPREAD: u64 = 10;
/// A connection that says nothing for so long after its watch should have ended is dead.
const SILENCE: Duration = Duration::from_secs(5);
/// A watch that begins with everything there is may last longer: that takes its time.
const FIRST_SECONDS: u64 = 240;
/// The server says nothing for so long while it sends what there is: its connection is dead.
const LISTING: Duration = Duration::from_secs(45);
/// It says nothing for so long after that: a watch that does not last long takes over.
const QUIET: Duration = Duration::from_secs(5);
/// How long the server may take to answer a request, or to begin a watch.
const RESPONSE: Duration = Duration::from_secs(30);
const PAGE: u32 = 500;
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// One watch of one store.
pub(crate) struct Informer {
    pub(crate) store: Arc<Store>,
    /// Which of the store's sources this is.
    pub(crate) source: usize,
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) client: Client,
    pub(crate) environment: Environment,
}

/// Why a watch ended.
enum End {
    /// As it should: go on where it was.
    Over,
    /// The place it was at is too long ago: begin anew.
    TooOld,
    /// The server does not stream the first list.
    NoStreaming,
    /// The server does not know the kind.
    NotServed,
    Failed(String),
    /// The server has said nothing for so long.
    Silent(Duration),
}

impl Informer {
    /// Lists and watches for ever, telling the store what it sees.
    pub(crate) async fn run(&self) {
        let kind = self.store.kind.clone();
        let activity = &self.environment.activity;
        let syncing = || activity.busy(format!("first list of {kind}"));
        let mut busy = Some(syncing());
        let mut position = None;
        let mut streaming = true;
        let mut delay = FIRST_DELAY;
        let mut served = true;
        // How often discovery has said in a row that there is no such kind.
        let mut absences = 0;
        loop {
            let (mut progress, begun) = (false, Instant::now());
            let end = self
                .follow(&mut position, streaming, || {
                    progress = true;
                    busy = None;
                })
                .await;
            if progress {
                (delay, absences) = (FIRST_DELAY, 0);
                self.store.works();
                if !std::mem::replace(&mut served, true) {
                    info!(%kind, "is served now, watching it");
                }
            }
            match end {
                // An idle watch ends as it should, too; only one that ends at once is suspicious.
                End::Over if progress || begun.elapsed() > LAST_DELAY => continue,
                End::NoStreaming if streaming => {
                    debug!(%kind, "the server does not stream lists, listing in pages");
                    streaming = false;
                    continue;
                }
                End::TooOld => {
                    debug!(%kind, "watch is too old, listing again");
                    position = None;
                    if progress {
                        continue;
                    }
                }
                // One 404 may be a load balancer's, or that of an API server that does not serve a
                // new definition yet: objects that are known are only let go when discovery says
                // twice that there is no such kind.
                End::NotServed
                    if self.store.size().objects > 0 && self.doubts(&mut absences).await =>
                {
                    self.store.fails("answered with 404 Not Found", None);
                    let at = Instant::now() + self.jittered(ABSENCE);
                    let _due = activity.due(at, format!("watch of {kind}: not served"));
                    tokio::time::sleep_until(at).await;
                    continue;
                }
                End::NotServed => {
                    position = None;
                    if std::mem::replace(&mut served, false) {
                        info!(%kind, "is not served, waiting for its definition");
                        self.store.not_served();
                        self.store.works();
                    }
                    // Nobody knows whether it will ever come: not something to be settled.
                    busy = None;
                    tokio::time::sleep(self.jittered(ABSENCE)).await;
                    continue;
                }
                End::Over | End::NoStreaming => {}
                End::Failed(_) | End::Silent(_) => {
                    let (error, silent) = match end {
                        End::Silent(silent) => (silence(silent), Some(silent)),
                        End::Failed(error) => (error, None),
                        _ => continue,
                    };
                    self.store.fails(&error, silent);
                    warn!(%kind, error, "watch failed, trying again in {delay:?}");
                    // A first list that has not worked is work to do; a broken watch of a synced
                    // cache is too, for what it would have shown.
                    let at = Instant::now() + self.jittered(delay);
                    let _due = activity.due(at, format!("watch of {kind}: {error}"));
                    busy = None;
                    tokio::time::sleep_until(at).await;
                    if !self.store.is_synced() {
                        busy = Some(syncing());
                    }
                    delay = (delay * 2).min(LAST_DELAY);
                    continue;
                }
            }
            // It ended well, but without a word: not to be repeated in a tight loop.
            tokio::time::sleep(self.jittered(delay)).await;
            delay = (delay * 2).min(LAST_DELAY);
        }
    }

    /// One connection, preceded by pages where the first list is not streamed. `heard` is called
    /// when a list is complete and whenever something arrives after it.
    async fn follow(
        &self,
        position: &mut Option<String>,
        streaming: bool,
        mut heard: impl FnMut(),
    ) -> End {
        if position.is_none() && !streaming {
            match self.list().await {
                Ok(version) => *position = Some(version),
                Err(error) => return end_of(&error),
            }
            heard();
        }
        let initial = position.is_none();
        let shortest = if initial {
            FIRST_SECONDS
        } else {
            WATCH_SECONDS
        };
        let seconds = shortest + self.environment.random.below(WATCH_SPREAD);
        let params = WatchParams {
            label_selector: self.store.scope.label_selector(),
            field_selector: self.store.scope.fields.clone(),
            timeout: u32::try_from(seconds).ok(),
            bookmarks: true,
            send_initial_events: initial,
        };
        // Not older than what we know: never back in time.
        let from = position
            .clone()
            .unwrap_or_else(|| match self.store.seen(self.source) {
                0 => String::new(),
                seen => seen.to_string(),
            });
        let events = match self.watch(&params, &from).await {
            Ok(events) => events,
            Err(error) if initial && refuses_streaming(&error) => return End::NoStreaming,
            Err(error) => return end_of(&error),
        };
        pin_mut!(events);
        self.store.heard(self.source);
        if initial {
            self.store.list_begins(self.source);
        }
        let mut last = Instant::now();
        let ends = last + Duration::from_secs(seconds);
        loop {
            let limit = match (initial, position.is_some()) {
                (true, false) => last + LISTING,
                (true, true) => last + QUIET,
                (false, _) => ends + SILENCE,
            };
            let event = match timeout_at(limit, events.next()).await {
                Ok(Some(event)) => event,
                Ok(None) => {
                    // As it was asked to, and not because what is between cuts connections.
                    if Instant::now() >= ends {
                        heard();
                        self.store.heard(self.source);
                    }
                    return End::Over;
                }
                Err(_) if initial && position.is_some() => return End::Over,
                Err(_) => return End::Silent(last.elapsed()),
            };
            last = Instant::now();
            let object = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    let version = object.resource_version();
                    self.store.put(self.source, object);
                    version
                }
                Ok(WatchEvent::Deleted(object)) => {
                    let version = object.resource_version();
                    self.store.remove(self.source, object);
                    version
                }
                Ok(WatchEvent::Bookmark(mark)) => {
                    let version = mark.metadata.resource_version;
                    let reached = version.parse().unwrap_or(0);
                    if mark.metadata.annotations.contains_key(INITIAL_EVENTS_END) {
                        self.store.list_ends(self.source, reached);
                        *position = Some(version.clone());
                    } else {
                        self.store.reached(self.source, reached);
                    }
                    Some(version)
                }
                Ok(WatchEvent::Error(status)) if status.code == 410 => return End::TooOld,
                Ok(WatchEvent::Error(status))
                    if initial && position.is_none() && status.code == 422 =>
                {
                    return End::NoStreaming;
                }
                Ok(WatchEvent::Error(status)) => return End::Failed(status.message),
                Err(error) => return End::Failed(error.to_string()),
            };
            // Before the first list is complete there is no place to go on from.
            if position.is_some() {
                heard();
                if let Some(version) = object {
                    *position = Some(version);
                }
            }
        }
    }

    /// Whether the kind may still be served, though a request for it was answered with 404.
    async fn doubts(&self, absences: &mut u32) -> bool {
        let kind = &self.store.kind;
        let absent = within(self.is_absent()).await.unwrap_or(false);
        *absences = if absent { *absences + 1 } else { 0 };
        if !absent {
            warn!(%kind, "the watch was answered with 404, but the kind may be served: keeping what is cached");
        }
        *absences < 2
    }

    /// Whether discovery says that there is no such kind. A 404 to that says nothing: what answers
    /// everything with 404 is not the API server.
    async fn is_absent(&self) -> kube::Result<bool> {
        let (kind, client) = (&self.store.kind, &self.client);
        let version = kind.api_version();
        let list = if kind.group.is_empty() {
            client.list_core_api_resources(&version).await?
        } else {
            let groups = client.list_api_groups().await?.groups;
            let mut versions = groups
                .iter()
                .filter(|group| group.name == kind.group)
                .flat_map(|group| &group.versions);
            if !versions.any(|one| one.group_version == version) {
                return Ok(true);
            }
            client.list_api_group_resources(&version).await?
        };
        Ok(!list.resources.iter().any(|one| one.name == kind.plural))
    }

    /// The first list in pages; answers the version it shows.
    async fn list(&self) -> kube::Result<String> {
        let mut params = ListParams {
            label_selector: self.store.scope.label_selector(),
            field_selector: self.store.scope.fields.clone(),
            limit: Some(PAGE),
            ..ListParams::default()
        };
        self.store.list_begins(self.source);
        loop {
            let (items, metadata) = if self.store.scope.metadata_only {
                let page = within(self.api().list_metadata(&params)).await?;
                let items = page
                    .items
                    .into_iter()
                    .map(|one| Watched::of_metadata(&one.metadata));
                (items.collect::<Vec<_>>(), page.metadata)
            } else {
                let page = within(self.api().list(&params)).await?;
                (page.items, page.metadata)
            };
            for item in items {
                self.store.put(self.source, item);
            }
            params.continue_token = metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                let version = metadata.resource_version.unwrap_or_default();
                let reached = version.parse().unwrap_or(0);
                self.store.list_ends(self.source, reached);
                return Ok(version);
            }
        }
    }

    async fn watch(
        &self,
        params: &WatchParams,
        from: &str,
    ) -> kube::Result<impl Stream<Item = kube::Result<WatchEvent<Watched>>> + Send> {
        let whole = |event| event;
        if self.store.scope.metadata_only {
            let events = within(self.api().watch_metadata(params, from)).await?;
            let events = events.map(|event| {
                event.map(|event| match event {
                    WatchEvent::Added(one) => {
                        WatchEvent::Added(Watched::of_metadata(&one.metadata))
                    }
                    WatchEvent::Modified(one) => {
                        WatchEvent::Modified(Watched::of_metadata(&one.metadata))
                    }
                    WatchEvent::Deleted(one) => {
                        WatchEvent::Deleted(Watched::of_metadata(&one.metadata))
                    }
                    WatchEvent::Bookmark(mark) => WatchEvent::Bookmark(mark),
                    WatchEvent::Error(status) => WatchEvent::Error(status),
                })
            });
            Ok(events.left_stream())
        } else {
            let events = within(self.api().watch(params, from)).await?;
            Ok(events.map(whole).right_stream())
        }
    }

    fn api(&self) -> Api<Watched> {
        let (client, resource) = (self.client.clone(), self.store.kind.api_resource());
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        }
    }

    /// Up to a quarter more, so that many operators do not come back at the same moment.
    fn jittered(&self, delay: Duration) -> Duration {
        let quarter = u64::try_from(delay.as_millis() / 4).unwrap_or(0);
        delay + Duration::from_millis(self.environment.random.below(quarter + 1))
    }
}

/// A request that the server answers in time: a connection may be dead without a word.
async fn within<T>(request: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    timeout(RESPONSE, request).await.unwrap_or_else(|_| {
        let seconds = RESPONSE.as_secs();
        let message = format!("the API server did not answer within {seconds} s");
        Err(kube::Error::Service(message.into()))
    })
}

fn silence(quiet: Duration) -> String {
    format!("the API server said nothing for {} s", quiet.as_secs())
}

fn refuses_streaming(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 400 || status.code == 422)
}

fn end_of(error: &kube::Error) -> End {
    match error {
        kube::Error::Api(status) if status.code == 410 => End::TooOld,
        kube::Error::Api(status) if status.code == 404 => End::NotServed,
        // The server's message alone: what else there is is for debugging.
        kube::Error::Api(status) if !status.message.is_empty() => {
            End::Failed(status.message.clone())
        }
        error => End::Failed(error.to_string()),
    }
}
