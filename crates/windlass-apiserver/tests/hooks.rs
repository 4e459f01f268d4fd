//! Hooks at the server's edges: what they see, and what clients see of what they do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tower::Service as _;
use windlass_apiserver::hooks::{
    ConnectionReset, EventKind, HookFuture, Hooks, Outcome, Reply, StaleRead, Verdict, Watch,
    WatchEnd, WatchEvent, Written,
};
use windlass_apiserver::http::{Body, ResourceRequest};
use windlass_apiserver::{ApiServer, Config, Identity, InProcess};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

/// What a hook was shown of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    watch: u64,
    metadata_only: bool,
    kind: EventKind,
    name: String,
    initial: bool,
}

/// Hooks that a test sets while requests are under way.
#[derive(Default)]
struct Scripted {
    verdict: Mutex<Option<Verdict>>,
    reply: Mutex<Option<Reply>>,
    revision: Mutex<Option<u64>>,
    /// Watches whose events are held, and what lets them go.
    held: Mutex<HashMap<u64, Arc<Notify>>>,
    /// Ends the watch under way.
    end: Mutex<Option<WatchEnd>>,
    ending: Notify,
    seen: Mutex<Vec<Seen>>,
    written: Mutex<Vec<Written>>,
    last: Mutex<Option<Outcome>>,
    watches: Mutex<Vec<Watch>>,
    ended: Mutex<Vec<u64>>,
    reads: Mutex<Vec<u64>>,
}

impl Hooks for Scripted {
    fn before<'a>(&'a self, _: &'a Identity, _: &'a ResourceRequest) -> HookFuture<'a, Verdict> {
        let verdict = self.verdict.lock().unwrap().take();
        Box::pin(std::future::ready(verdict.unwrap_or(Verdict::Pass)))
    }

    fn after<'a>(
        &'a self,
        _: &'a Identity,
        request: &'a ResourceRequest,
        outcome: Outcome,
    ) -> HookFuture<'a, Reply> {
        assert!(request.verb.writes() || outcome.changes.is_empty());
        *self.last.lock().unwrap() = Some(outcome.clone());
        self.written.lock().unwrap().extend(outcome.changes);
        let reply = self.reply.lock().unwrap().take();
        Box::pin(std::future::ready(reply.unwrap_or(Reply::Send)))
    }

    fn watch_began(&self, watch: &Watch) {
        self.watches.lock().unwrap().push(watch.clone());
    }

    fn deliver<'a>(&'a self, watch: &'a Watch, event: WatchEvent<'a>) -> HookFuture<'a, ()> {
        self.seen.lock().unwrap().push(Seen {
            watch: watch.id,
            metadata_only: watch.metadata_only,
            kind: event.kind,
            name: event.name.to_owned(),
            initial: event.initial,
        });
        let held = self.held.lock().unwrap().get(&watch.id).cloned();
        Box::pin(async move {
            if let Some(released) = held {
                released.notified().await;
            }
        })
    }

    fn ends<'a>(&'a self, _: &'a Watch) -> HookFuture<'a, WatchEnd> {
        Box::pin(async {
            loop {
                let ending = self.ending.notified();
                if let Some(end) = self.end.lock().unwrap().take() {
                    return end;
                }
                ending.await;
            }
        })
    }

    fn watch_ended(&self, watch: &Watch) {
        self.ended.lock().unwrap().push(watch.id);
    }

    fn revision_of(&self, read: StaleRead<'_>) -> Option<u64> {
        self.reads.lock().unwrap().push(read.not_older_than);
        *self.revision.lock().unwrap()
    }
}

/// A server with scripted hooks, and a client of it.
struct Scene {
    hooks: Arc<Scripted>,
    client: InProcess,
}

impl Scene {
    fn new() -> Self {
        let hooks = Arc::new(Scripted::default());
        let server = ApiServer::new(Config {
            hooks: Some(hooks.clone()),
            ..Config::default()
        });
        let client = server.in_process(Identity::admin());
        Self { hooks, client }
    }

    async fn try_send(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<Value>,
    ) -> Result<Response<Body>, ConnectionReset> {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("accept", accept)
            .header("content-type", "application/json")
            .body(Full::from(body.into_bytes()))
            .unwrap();
        self.client.clone().call(request).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let answer = self.try_send(method, path, "application/json", body).await;
        let body = answer.unwrap().into_body().collect().await.unwrap();
        serde_json::from_slice(&body.to_bytes()).unwrap()
    }

    async fn create(&self, name: &str) -> u64 {
        let made = self
            .send(Method::POST, CONFIGMAPS, Some(configmap(name, "1")))
            .await;
        revision(&made)
    }

    async fn names(&self, query: &str) -> Vec<String> {
        let list = self
            .send(Method::GET, &format!("{CONFIGMAPS}{query}"), None)
            .await;
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn watch(&self, query: &str, accept: &str) -> Events {
        let path = format!("{CONFIGMAPS}?watch=1{query}");
        let answer = self.try_send(Method::GET, &path, accept, None).await;
        let mut body = answer.unwrap().into_body();
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(frame) = body.frame().await {
                let failed = frame.is_err();
                let text = frame.map_or_else(
                    |error| error.to_string(),
                    |frame| {
                        let event: Value =
                            serde_json::from_slice(&frame.into_data().unwrap()).unwrap();
                        let object = &event["object"];
                        let what = object["metadata"]["name"].as_str();
                        let what = what.or(object["reason"].as_str()).unwrap_or_default();
                        format!("{} {what}", event["type"].as_str().unwrap())
                    },
                );
                if sender.send(text).is_err() || failed {
                    return;
                }
            }
        });
        Events(receiver)
    }
}

/// The events of a watch, in short.
struct Events(mpsc::UnboundedReceiver<String>);

impl Events {
    /// The next event; none when the watch has ended.
    async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }

    /// What has come once nothing else happens in this runtime.
    async fn arrived(&mut self) -> Vec<String> {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}

fn configmap(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str().unwrap();
    text.parse().unwrap()
}

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

#[tokio::test]
async fn event_held_for_one_watch_reaches_the_others() {
    let scene = Scene::new();
    scene.create("before").await;
    let mut full = scene.watch("", "application/json").await;
    let mut metadata = scene.watch("", METADATA).await;
    assert_eq!(full.next().await.unwrap(), "ADDED before");
    assert_eq!(metadata.next().await.unwrap(), "ADDED before");
    let watches = scene.hooks.watches.lock().unwrap().clone();
    let held = watches.iter().find(|watch| watch.metadata_only).unwrap();
    let release = Arc::new(Notify::new());
    scene
        .hooks
        .held
        .lock()
        .unwrap()
        .insert(held.id, release.clone());
    scene.create("first").await;
    scene.create("second").await;
    assert_eq!(full.arrived().await, ["ADDED first", "ADDED second"]);
    assert!(metadata.arrived().await.is_empty());
    // Released one by one.
    release.notify_one();
    assert_eq!(metadata.arrived().await, ["ADDED first"]);
    release.notify_one();
    assert_eq!(metadata.arrived().await, ["ADDED second"]);
    let seen = scene.hooks.seen.lock().unwrap().clone();
    let of_held = seen.iter().filter(|seen| seen.watch == held.id);
    let of_held: Vec<(&str, bool)> = of_held.map(|seen| (&*seen.name, seen.initial)).collect();
    assert_eq!(
        of_held,
        [("before", true), ("first", false), ("second", false)]
    );
    assert_eq!(seen.len(), 6);
}

#[tokio::test]
async fn event_of_an_object_that_leaves_the_selector_is_a_deletion() {
    let scene = Scene::new();
    let mut watch = scene
        .watch("&labelSelector=a%3Db", "application/json")
        .await;
    let mut object = configmap("one", "1");
    object["metadata"]["labels"] = json!({"a": "b"});
    scene
        .send(Method::POST, CONFIGMAPS, Some(object.clone()))
        .await;
    scene.create("unseen").await;
    object["metadata"]["labels"] = json!({});
    let path = format!("{CONFIGMAPS}/one");
    scene.send(Method::PUT, &path, Some(object)).await;
    assert_eq!(watch.arrived().await, ["ADDED one", "DELETED one"]);
    let seen = scene.hooks.seen.lock().unwrap();
    let kinds: Vec<EventKind> = seen.iter().map(|seen| seen.kind).collect();
    assert_eq!(kinds, [EventKind::Added, EventKind::Deleted]);
}

#[tokio::test]
async fn lost_answer_leaves_the_write_applied() {
    let scene = Scene::new();
    *scene.hooks.reply.lock().unwrap() = Some(Reply::Lose);
    let body = Some(configmap("one", "1"));
    let answer = scene
        .try_send(Method::POST, CONFIGMAPS, "application/json", body)
        .await;
    assert_eq!(answer.err(), Some(ConnectionReset));
    assert_eq!(scene.names("").await, ["one"]);
}

#[tokio::test]
async fn request_reset_before_it_is_applied_changes_nothing() {
    let scene = Scene::new();
    *scene.hooks.verdict.lock().unwrap() = Some(Verdict::Reset);
    let body = Some(configmap("one", "1"));
    let answer = scene
        .try_send(Method::POST, CONFIGMAPS, "application/json", body)
        .await;
    assert_eq!(answer.err(), Some(ConnectionReset));
    assert!(scene.names("").await.is_empty());
    assert!(scene.hooks.written.lock().unwrap().is_empty());
}

#[tokio::test]
async fn outcome_shows_each_object_before_and_after_and_nothing_of_a_write_without_effect() {
    let scene = Scene::new();
    let created = scene.create("one").await;
    let path = format!("{CONFIGMAPS}/one");
    scene
        .send(Method::PUT, &path, Some(configmap("one", "2")))
        .await;
    scene
        .send(Method::PUT, &path, Some(configmap("one", "2")))
        .await;
    scene.send(Method::DELETE, &path, None).await;
    scene
        .send(
            Method::POST,
            &format!("{CONFIGMAPS}?dryRun=All"),
            Some(configmap("two", "1")),
        )
        .await;
    let written = scene.hooks.written.lock().unwrap();
    let kinds: Vec<EventKind> = written.iter().map(Written::kind).collect();
    assert_eq!(
        kinds,
        [EventKind::Added, EventKind::Modified, EventKind::Deleted]
    );
    let value = |json: &bytes::Bytes| {
        serde_json::from_slice::<Value>(json).unwrap()["data"]["value"].clone()
    };
    assert!(written[0].before().is_none());
    assert_eq!(written[0].revision(), created);
    assert_eq!(written[1].revision_before(), Some(created));
    assert_eq!(value(written[1].before().unwrap()), "1");
    assert_eq!(value(written[1].after()), "2");
    assert_eq!(
        (
            written[2].resource(),
            written[2].namespace(),
            written[2].name()
        ),
        ("configmaps", "default", "one")
    );
}

#[tokio::test]
async fn outcome_says_whether_the_write_named_the_version_or_the_uid_it_means() {
    let scene = Scene::new();
    let created = scene
        .send(Method::POST, CONFIGMAPS, Some(configmap("one", "1")))
        .await;
    let (version, uid) = (revision(&created), created["metadata"]["uid"].clone());
    let path = format!("{CONFIGMAPS}/one");
    let mut guarded = Vec::new();
    let mut send = async |method, media, body: Value| {
        let request = Request::builder()
            .method(method)
            .uri(&path)
            .header("content-type", media)
            .body(Full::from(body.to_string().into_bytes()))
            .unwrap();
        let answer = scene.client.clone().call(request).await.unwrap();
        let outcome = scene.hooks.last.lock().unwrap().clone().unwrap();
        guarded.push((answer.status().as_u16(), outcome.guarded, outcome.applied));
    };
    let merge = "application/merge-patch+json";
    let json_patch = "application/json-patch+json";
    let mut whole = configmap("one", "2");
    send(Method::PUT, "application/json", whole.clone()).await;
    whole["metadata"]["resourceVersion"] = version.to_string().into();
    send(Method::PUT, "application/json", whole).await;
    send(Method::PATCH, merge, json!({"data": {"value": "3"}})).await;
    let by_uid = json!({"metadata": {"uid": uid}, "data": {"value": "4"}});
    send(Method::PATCH, merge, by_uid).await;
    let tests = json!([{"op": "test", "path": "/data/value", "value": "4"}, {"op": "add", "path": "/data/value", "value": "5"}]);
    send(Method::PATCH, json_patch, tests).await;
    let blind = json!([{"op": "add", "path": "/data/value", "value": "6"}]);
    send(Method::PATCH, json_patch, blind).await;
    send(
        Method::DELETE,
        "application/json",
        json!({"preconditions": {"uid": uid}, "kind": "DeleteOptions", "apiVersion": "v1"}),
    )
    .await;
    assert_eq!(
        guarded,
        [
            (200, false, false),
            (409, true, false),
            (200, false, false),
            (200, true, false),
            (200, true, false),
            (200, false, false),
            (200, true, false),
        ]
    );
}

#[tokio::test]
async fn list_is_of_the_past_only_where_its_client_accepts_that() {
    let scene = Scene::new();
    let first = scene.create("first").await;
    let second = scene.create("second").await;
    *scene.hooks.revision.lock().unwrap() = Some(first);
    assert_eq!(scene.names("?resourceVersion=0").await, ["first"]);
    assert_eq!(
        scene
            .names(&format!(
                "?resourceVersion={first}&resourceVersionMatch=NotOlderThan"
            ))
            .await,
        ["first"]
    );
    // The newest at least, the present, an exact version, pages: never the past.
    let not_older = format!("?resourceVersion={second}&resourceVersionMatch=NotOlderThan");
    assert_eq!(scene.names(&not_older).await, ["first", "second"]);
    assert_eq!(scene.names("").await, ["first", "second"]);
    let exact = format!("?resourceVersion={second}&resourceVersionMatch=Exact");
    assert_eq!(scene.names(&exact).await, ["first", "second"]);
    assert_eq!(*scene.hooks.reads.lock().unwrap(), [0, first, second]);
}

#[tokio::test]
async fn watch_from_any_version_begins_in_the_past_and_catches_up() {
    let scene = Scene::new();
    let first = scene.create("first").await;
    scene.create("second").await;
    *scene.hooks.revision.lock().unwrap() = Some(first);
    let mut any = scene.watch("&resourceVersion=0", "application/json").await;
    assert_eq!(any.arrived().await, ["ADDED first", "ADDED second"]);
    let initial: Vec<bool> = scene
        .hooks
        .seen
        .lock()
        .unwrap()
        .iter()
        .map(|seen| seen.initial)
        .collect();
    assert_eq!(initial, [true, false]);
    // One without a version wants the present.
    let mut present = scene.watch("", "application/json").await;
    assert_eq!(present.arrived().await, ["ADDED first", "ADDED second"]);
    assert_eq!(*scene.hooks.reads.lock().unwrap(), [0]);
}

#[tokio::test]
async fn watch_ends_as_its_hook_wants() {
    for (end, last) in [
        (WatchEnd::Closed, None),
        (WatchEnd::Reset, Some("connection reset")),
        (WatchEnd::Expired, Some("ERROR Expired")),
    ] {
        let scene = Scene::new();
        scene.create("one").await;
        let mut watch = scene.watch("", "application/json").await;
        assert_eq!(watch.next().await.unwrap(), "ADDED one");
        assert!(watch.arrived().await.is_empty());
        *scene.hooks.end.lock().unwrap() = Some(end);
        scene.hooks.ending.notify_waiters();
        if let Some(last) = last {
            assert_eq!(watch.next().await.unwrap(), last, "{end:?}");
        }
        assert_eq!(watch.next().await, None, "{end:?}");
        let began = scene.hooks.watches.lock().unwrap()[0].id;
        assert_eq!(*scene.hooks.ended.lock().unwrap(), [began], "{end:?}");
    }
}

#[tokio::test]
async fn refused_request_is_not_applied() {
    let scene = Scene::new();
    let refusal = Verdict::Fail(http::StatusCode::SERVICE_UNAVAILABLE, "not now".to_owned());
    *scene.hooks.verdict.lock().unwrap() = Some(refusal);
    let answer = scene
        .send(Method::POST, CONFIGMAPS, Some(configmap("one", "1")))
        .await;
    assert_eq!(
        (&answer["code"], &answer["message"]),
        (&json!(503), &json!("not now"))
    );
    assert!(scene.names("").await.is_empty());
}
