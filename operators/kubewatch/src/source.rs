//! What happens to the objects of one kind, from a known version on.
//!
//! The framework's caches say what is; messages are about what happened. So this is a list and a watch
//! of its own, which begins at the version that progress was kept of. When the API server no longer
//! knows what happened since then, the objects are listed and compared with what receivers know of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::Client;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Request;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep_until};
use windlass::testing::Environment;

use crate::ledger::Step;
use crate::notice::{Notice, Reason};
use crate::progress::{KindProgress, LABEL, Seen};
use crate::redact;
use crate::resource::Watched;

const FIRST_DELAY: Duration = Duration::from_secs(1);
const LAST_DELAY: Duration = Duration::from_mins(1);
/// How many objects are listed at once.
const PAGE: u32 = 500;
/// How the API versions of this operator's own kind begin.
const GROUP: &str = "kubewatch.example.com/";
/// What the API server answers when a version is too old.
const GONE: u16 = 410;

/// What a source reports.
#[derive(Debug)]
pub(crate) enum Report {
    /// Something happened.
    Change(Step, Box<Notice>),
    /// Nothing happened up to a version.
    Version(Step),
    /// These objects were there before anything happened.
    Baseline(String, KindProgress),
    /// The kind cannot be watched, and why; or can again.
    State(String, Option<String>),
}

/// The changes of the objects of one kind.
pub(crate) struct Source {
    watched: Watched,
    path: String,
    client: Client,
    environment: Environment,
    keeps_old: bool,
    progress: Option<KindProgress>,
    last: BTreeMap<String, Arc<Value>>,
    reports: UnboundedSender<Report>,
}

enum Failure {
    /// The version is too old.
    Gone,
    Other(kube::Error),
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == GONE => Self::Gone,
            other => Self::Other(other),
        }
    }
}

impl Source {
    pub(crate) fn new(
        watched: Watched,
        path: String,
        (client, environment): (Client, Environment),
        keeps_old: bool,
        progress: Option<KindProgress>,
        reports: UnboundedSender<Report>,
    ) -> Self {
        Self {
            watched,
            path,
            client,
            environment,
            keeps_old,
            progress,
            last: BTreeMap::new(),
            reports,
        }
    }

    /// Reports until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut delay = FIRST_DELAY;
        let mut lists = self.progress.is_none();
        let mut failing = None;
        loop {
            let round = if lists {
                self.list().await
            } else {
                self.watch().await
            };
            let error = match round {
                Ok(()) => {
                    lists = false;
                    delay = FIRST_DELAY;
                    None
                }
                Err(Failure::Gone) => {
                    lists = true;
                    None
                }
                Err(Failure::Other(error)) => Some(error.to_string()),
            };
            if failing != error {
                failing.clone_from(&error);
                self.report(Report::State(self.watched.to_string(), error));
            }
            if failing.is_some() {
                let at = Instant::now() + delay;
                let planned = self.environment.activity.planned(at);
                sleep_until(at).await;
                drop(planned);
                delay = (delay * 2).min(LAST_DELAY);
            }
        }
    }

    fn report(&self, report: Report) {
        // When nobody listens, the engine has ended, and this does so next.
        let _ = self.reports.send(report);
    }

    /// Lists all objects: what is to be compared with later, or what happened meanwhile.
    async fn list(&mut self) -> Result<(), Failure> {
        let (mut items, mut params) = (Vec::new(), ListParams::default().limit(PAGE));
        let version = loop {
            let request = Request::new(&self.path).list(&params);
            let request = request.map_err(kube::Error::BuildRequest)?;
            let mut page: Value = self.client.request(request).await?;
            if let Value::Array(some) = page["items"].take() {
                items.extend(some);
            }
            match page["metadata"]["continue"].as_str() {
                Some(token) if !token.is_empty() => params = params.continue_token(token),
                _ => break text(&page, "resourceVersion"),
            }
        };
        let items = items.into_iter().filter(|item| !is_own(item));
        let objects = items.map(|item| (key_of(&item), item));
        let objects: BTreeMap<String, Value> = objects.collect();
        match &self.progress {
            Some(known) if !known.partial => self.compare(objects, &version),
            _ => self.begin(objects, version),
        }
        Ok(())
    }

    fn begin(&mut self, objects: BTreeMap<String, Value>, version: String) {
        let seen = objects
            .iter()
            .map(|(key, object)| (key.clone(), seen(object)));
        let progress = KindProgress {
            version,
            objects: seen.collect(),
            partial: false,
        };
        self.progress = Some(progress.clone());
        self.report(Report::Baseline(self.path.clone(), progress));
        for (key, mut object) in objects {
            self.clean(&mut object);
            self.keep(&key, Some(&Arc::new(object)));
        }
    }

    fn compare(&mut self, objects: BTreeMap<String, Value>, version: &str) {
        let known = self.progress.clone().unwrap_or_default().objects;
        for (key, was) in &known {
            let now = objects.get(key).map(seen);
            if now.is_none_or(|now| now.1 != was.1) {
                let last = self.last.get(key).cloned();
                let gone = last.unwrap_or_else(|| Arc::new(remains(key, was)));
                self.change(Reason::Deleted, key, gone, None);
            }
        }
        for (key, object) in objects {
            let now = seen(&object);
            let was = known.get(&key).filter(|was| was.1 == now.1);
            let reason = match was {
                Some(was) if *was == now => continue,
                Some(_) => Reason::Updated,
                None => Reason::Created,
            };
            self.object(reason, object, None);
        }
        self.advance(version);
    }

    /// Follows what happens until the API server ends the watch.
    async fn watch(&mut self) -> Result<(), Failure> {
        let version = self.progress.clone().unwrap_or_default().version;
        let params = WatchParams::default();
        let request = Request::new(&self.path).watch(&params, &version);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let events = self.client.request_events::<Value>(request).await?;
        self.report(Report::State(self.watched.to_string(), None));
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.try_next().await? {
            let (reason, object) = match event {
                WatchEvent::Added(object) => (Reason::Created, object),
                WatchEvent::Modified(object) => (Reason::Updated, object),
                WatchEvent::Deleted(object) => (Reason::Deleted, object),
                WatchEvent::Bookmark(mark) => {
                    self.advance(&mark.metadata.resource_version);
                    continue;
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
            };
            if is_own(&object) {
                continue;
            }
            let version = text(&object, "resourceVersion");
            self.object(reason, object, Some(version));
        }
        Ok(())
    }

    fn object(&mut self, reason: Reason, mut object: Value, version: Option<String>) {
        let key = key_of(&object);
        self.clean(&mut object);
        self.change(reason, &key, Arc::new(object), version);
    }

    fn change(&mut self, reason: Reason, key: &str, object: Arc<Value>, version: Option<String>) {
        let now = seen(&object);
        let old = self.keep(key, (reason != Reason::Deleted).then_some(&object));
        let progress = self.progress.get_or_insert_default();
        let known = match reason {
            Reason::Deleted => progress.objects.remove(key),
            _ => progress.objects.insert(key.to_owned(), now.clone()),
        };
        if let Some(version) = &version {
            progress.version.clone_from(version);
        }
        let step = Step {
            kind: self.path.clone(),
            object: Some((
                key.to_owned(),
                (reason != Reason::Deleted).then(|| now.clone()),
            )),
            version,
        };
        if known.as_ref() == Some(&now) && reason != Reason::Deleted {
            return self.report(Report::Version(step));
        }
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        let notice = Notice {
            kind: self.watched.kind.clone(),
            api_version: self.watched.api_version(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            reason,
            id: format!("{}-{}-{}", now.1, now.0, reason.operation()),
            object: Some(object),
            old: old.filter(|_| reason == Reason::Updated),
            text: None,
        };
        self.report(Report::Change(step, Box::new(notice)));
    }

    fn advance(&mut self, version: &str) {
        version.clone_into(&mut self.progress.get_or_insert_default().version);
        self.report(Report::Version(Step {
            kind: self.path.clone(),
            object: None,
            version: Some(version.to_owned()),
        }));
    }

    /// Remembers an object as it is now, if somebody wants to know later; returns how it was.
    fn keep(&mut self, key: &str, object: Option<&Arc<Value>>) -> Option<Arc<Value>> {
        match object {
            Some(object) if self.keeps_old => self.last.insert(key.to_owned(), Arc::clone(object)),
            _ => self.last.remove(key),
        }
    }

    /// Makes an object what may be sent.
    fn clean(&self, object: &mut Value) {
        if !self.watched.built_in {
            return redact::redact(object);
        }
        if self.watched.kind == "Secret" {
            redact::secret(object);
        }
        if let Some(fields) = object.as_object_mut() {
            fields.remove("kind");
            fields.remove("apiVersion");
        }
    }
}

/// Whether it is what this operator keeps or says of itself: a message about it would cause the next.
fn is_own(object: &Value) -> bool {
    let about = ["regarding", "involvedObject"].map(|field| object[field]["apiVersion"].as_str());
    let mut about = about.into_iter().flatten();
    object["metadata"]["labels"][LABEL].is_string() || about.any(|one| one.starts_with(GROUP))
}

fn text(object: &Value, field: &str) -> String {
    let value = object["metadata"][field].as_str();
    value.unwrap_or_default().to_owned()
}

fn seen(object: &Value) -> Seen {
    Seen(text(object, "resourceVersion"), text(object, "uid"))
}

fn key_of(object: &Value) -> String {
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{}", text(object, "name")),
        None => text(object, "name"),
    }
}

/// What is known of an object that is gone and was not kept.
fn remains(key: &str, was: &Seen) -> Value {
    let (namespace, name) = match key.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, key),
    };
    let mut metadata = json!({ "name": name, "resourceVersion": was.0, "uid": was.1 });
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    json!({ "metadata": metadata })
}
