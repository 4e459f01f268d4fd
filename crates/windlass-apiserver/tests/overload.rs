//! More than can be served at once: who comes on top is told to come again, who does not read is
//! left behind, and nobody else notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;
use windlass_apiserver::hooks::{Hooks, Verdict};
use windlass_apiserver::http::{Body, ResourceRequest, Verb};
use windlass_apiserver::{ApiServer, Config, Identity, InProcess};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

async fn send(client: &InProcess, method: &str, path: &str, body: &Value) -> Response<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    client.clone().oneshot(request).await.expect("infallible")
}

fn config_map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": data}})
}

/// Holds every request about `ConfigMap`s until it is told to let go.
struct Holding(Arc<Semaphore>);

impl Hooks for Holding {
    fn before<'a>(
        &'a self,
        _: &'a Identity,
        request: &'a ResourceRequest,
    ) -> std::pin::Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async move {
            if request.resource == "configmaps" && request.verb != Verb::Watch {
                let _ = self.0.acquire().await;
            }
            Verdict::Pass
        })
    }
}

/// Holds every request until it is told to let go; counts those it holds.
struct Gate(Semaphore, AtomicUsize);

impl Hooks for Gate {
    fn before<'a>(
        &'a self,
        _: &'a Identity,
        _: &'a ResourceRequest,
    ) -> std::pin::Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(async move {
            self.1.fetch_add(1, Ordering::Relaxed);
            let _ = self.0.acquire().await;
            self.1.fetch_sub(1, Ordering::Relaxed);
            Verdict::Pass
        })
    }
}

/// Somebody who may do everything, and is not an administrator.
async fn everybody(server: &ApiServer) -> InProcess {
    let admin = server.in_process(Identity::admin());
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "somebody"}]});
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(send(&admin, "POST", path, &binding).await.status(), 201);
    let mut somebody = Identity::admin();
    "somebody".clone_into(&mut somebody.user);
    somebody.groups = vec!["system:authenticated".to_owned()];
    server.in_process(somebody)
}

#[tokio::test(start_paused = true)]
async fn who_comes_on_top_is_told_to_come_again() {
    let gate = Arc::new(Semaphore::new(0));
    let server = ApiServer::new(Config {
        hooks: Some(Arc::new(Holding(gate.clone()))),
        max_requests_in_flight: 3,
        max_mutating_requests_in_flight: 2,
        ..Config::default()
    });
    let client = everybody(&server).await;
    let read = |_| {
        let client = client.clone();
        tokio::spawn(async move { send(&client, "GET", PATH, &Value::Null).await })
    };
    let write = |number: usize| {
        let client = client.clone();
        let object = config_map(&format!("n{number}"), "a");
        tokio::spawn(async move { send(&client, "POST", PATH, &object).await })
    };
    let reads: Vec<_> = (0..3).map(read).collect();
    let writes: Vec<_> = (0..2).map(write).collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    for (method, body) in [("GET", Value::Null), ("POST", config_map("late", "a"))] {
        let refused = send(&client, method, PATH, &body).await;
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers()["retry-after"], "1");
        assert_eq!(
            refused.headers()["content-type"],
            "text/plain; charset=utf-8"
        );
        let text = refused
            .into_body()
            .collect()
            .await
            .expect("whole")
            .to_bytes();
        assert_eq!(&text[..], b"Too many requests, please try again later.\n");
    }
    // A watch lasts, so it does not count; and what is not a resource is always answered.
    let watch = send(&client, "GET", &format!("{PATH}?watch=1"), &Value::Null).await;
    assert_eq!(watch.status(), 200);
    assert_eq!(
        send(&client, "GET", "/readyz", &Value::Null).await.status(),
        200
    );
    // An administrator is served whatever happens.
    let admin = server.in_process(Identity::admin());
    let nodes = send(&admin, "GET", "/api/v1/nodes", &Value::Null).await;
    assert_eq!(nodes.status(), 200);
    gate.add_permits(100);
    for answer in join_all(reads).await {
        assert_eq!(answer.expect("no panic").status(), 200);
    }
    for answer in join_all(writes).await {
        assert_eq!(answer.expect("no panic").status(), 201);
    }
    assert_eq!(send(&client, "GET", PATH, &Value::Null).await.status(), 200);
}

/// A body of which nothing has come yet.
fn trickling() -> http_body_util::combinators::UnsyncBoxBody<Bytes, std::convert::Infallible> {
    let never = futures::stream::pending::<Result<http_body::Frame<Bytes>, _>>();
    http_body_util::StreamBody::new(never).boxed_unsync()
}

#[tokio::test(start_paused = true)]
async fn bodies_that_trickle_keep_no_other_user_from_writing() {
    let server = ApiServer::new(Config {
        max_mutating_requests_in_flight: 3,
        ..Config::default()
    });
    let other = everybody(&server).await;
    let slow = server.in_process(Identity::service_account("default", "slow"));
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let post = |client: &InProcess| {
        let request = Request::post(path).header("content-type", "application/json");
        let client = client.clone();
        tokio::spawn(client.oneshot(request.body(trickling()).expect("a request")))
    };
    let trickles: Vec<_> = (0..100).map(|_| post(&slow)).collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let written = send(&other, "POST", PATH, &config_map("a", "b")).await;
    assert_eq!(written.status(), 201);
    // One user has only so many bodies on their way.
    let refused = post(&slow).await.expect("no panic").expect("infallible");
    assert_eq!(refused.status(), 429);
    for trickle in trickles {
        let answer = trickle.await.expect("no panic").expect("infallible");
        assert_eq!(answer.status(), 504, "a body comes within a minute");
    }
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    assert_eq!(send(&slow, "POST", path, &review).await.status(), 201);
}

#[tokio::test(start_paused = true)]
async fn large_bodies_of_one_user_wait_for_each_other_and_not_for_those_of_another() {
    let gate = Arc::new(Gate(Semaphore::new(0), AtomicUsize::new(0)));
    let server = ApiServer::new(Config {
        hooks: Some(gate.clone()),
        ..Config::default()
    });
    // Each takes half of what one user may have under way.
    let large = json!({"unknown": "x".repeat(3_000_000)});
    let review = |who: &str| {
        let client = server.in_process(Identity::service_account("default", who));
        let large = large.clone();
        tokio::spawn(async move {
            let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
            send(&client, "POST", path, &large).await.status()
        })
    };
    let many: Vec<_> = (0..10).map(|_| review("greedy")).collect();
    let other = review("modest");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let under_way = gate.1.load(Ordering::Relaxed);
    assert_eq!(under_way, 3, "two of one, and the other's");
    gate.0.add_permits(3);
    assert_eq!(other.await.expect("no panic"), 201);
    for answer in many {
        assert_eq!(answer.await.expect("no panic"), 201);
    }
}

#[tokio::test(start_paused = true)]
async fn watches_of_one_user_are_counted_and_those_that_end_are_not() {
    let server = ApiServer::new(Config::default());
    let client = everybody(&server).await;
    let path = format!("{PATH}?watch=1&resourceVersion=0");
    let mut watches = Vec::new();
    while watches.len() <= 2_500 {
        let watch = send(&client, "GET", &path, &Value::Null).await;
        if watch.status() == 429 {
            break;
        }
        watches.push(watch);
    }
    assert_eq!(watches.len(), 2_500);
    let admin = server.in_process(Identity::admin());
    let watch = send(&admin, "GET", &path, &Value::Null).await;
    assert_eq!(watch.status(), 200);
    watches.pop();
    let watch = send(&client, "GET", &path, &Value::Null).await;
    assert_eq!(watch.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn watch_of_what_is_there_makes_it_ready_in_parts() {
    let server = ApiServer::new(Config::default());
    let client = server.in_process(Identity::admin());
    for number in 0..250 {
        let map = config_map(&format!("n{number:03}"), "a");
        assert_eq!(send(&client, "POST", PATH, &map).await.status(), 201);
    }
    let path = format!(
        "{PATH}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut watch = events(send(&client, "GET", &path, &Value::Null).await.into_body());
    // A change while the watch is being read comes after all that was there.
    let first = next_event(&mut watch).await.expect("an event");
    assert_eq!(first["object"]["metadata"]["name"], "n000");
    let late = config_map("late", "a");
    assert_eq!(send(&client, "POST", PATH, &late).await.status(), 201);
    for number in 1..250 {
        let event = next_event(&mut watch).await.expect("an event");
        let name = format!("n{number:03}");
        assert_eq!(
            (&event["type"], &event["object"]["metadata"]["name"]),
            (&json!("ADDED"), &json!(name))
        );
    }
    let mark = next_event(&mut watch).await.expect("an event");
    assert_eq!(mark["type"], "BOOKMARK");
    let event = next_event(&mut watch).await.expect("an event");
    assert_eq!(event["object"]["metadata"]["name"], "late");
}

/// A watch that is read: small events come several in one piece, a large one in several pieces.
struct Events {
    body: Body,
    read: Vec<u8>,
}

fn events(body: Body) -> Events {
    let read = Vec::new();
    Events { body, read }
}

/// The next event of a watch.
async fn next_event(watch: &mut Events) -> Option<Value> {
    loop {
        if let Some(end) = watch.read.iter().position(|byte| *byte == b'\n') {
            let event: Vec<u8> = watch.read.drain(..=end).collect();
            return serde_json::from_slice(&event).ok();
        }
        let piece = watch.body.frame().await?;
        let piece = piece
            .expect("a watch does not break off")
            .into_data()
            .ok()?;
        watch.read.extend_from_slice(&piece);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_not_read_blocks_nobody_and_is_told_to_start_over() {
    let server = ApiServer::new(Config::default());
    let client = server.in_process(Identity::admin());
    send(&client, "POST", PATH, &config_map("a", "0")).await;
    let path = format!("{PATH}?watch=1&resourceVersion={}", server.revision());
    let mut slow = events(send(&client, "GET", &path, &Value::Null).await.into_body());
    let mut quick = events(send(&client, "GET", &path, &Value::Null).await.into_body());
    let object = format!("{PATH}/a");
    for count in 0..10_000 {
        let data = config_map("a", &format!("value {count}"));
        assert_eq!(send(&client, "PUT", &object, &data).await.status(), 200);
        let event = next_event(&mut quick).await.expect("an event");
        assert_eq!(event["object"]["data"], data["data"]);
    }
    let told = next_event(&mut slow).await.expect("an event");
    assert_eq!(told["type"], "ERROR");
    assert_eq!(told["object"]["code"], 410);
    assert!(next_event(&mut slow).await.is_none(), "the watch is over");
}

#[tokio::test(start_paused = true)]
async fn large_changes_are_not_kept_for_ever() {
    let server = ApiServer::new(Config::default());
    let client = server.in_process(Identity::admin());
    send(&client, "POST", PATH, &config_map("a", "0")).await;
    let from = server.revision();
    let large = "x".repeat(500_000);
    for count in 0..100 {
        let data = config_map("a", &format!("{count}{large}"));
        let answer = send(&client, "PUT", &format!("{PATH}/a"), &data).await;
        assert_eq!(answer.status(), 200);
    }
    let path = format!("{PATH}?watch=1&resourceVersion={from}");
    let mut watch = events(send(&client, "GET", &path, &Value::Null).await.into_body());
    let told = next_event(&mut watch).await.expect("an event");
    assert_eq!(told["object"]["code"], 410, "the first are forgotten");
    let path = format!("{PATH}?watch=1&resourceVersion={}", server.revision() - 10);
    let mut watch = events(send(&client, "GET", &path, &Value::Null).await.into_body());
    for _ in 0..10 {
        let told = next_event(&mut watch).await.expect("an event");
        assert_eq!(told["type"], "MODIFIED");
    }
}

#[tokio::test(start_paused = true)]
async fn five_thousand_idle_watches_cost_little_and_all_hear_of_a_write() {
    let server = ApiServer::new(Config::default());
    let client = server.in_process(Identity::admin());
    let path = format!("{PATH}?watch=1&resourceVersion={}", server.revision());
    let before = resident();
    let mut watches = Vec::new();
    for _ in 0..5_000 {
        let mut watch = events(send(&client, "GET", &path, &Value::Null).await.into_body());
        // Polled once, it waits.
        assert!(futures::poll!(std::pin::pin!(next_event(&mut watch))).is_pending());
        watches.push(watch);
    }
    let each = resident().saturating_sub(before) / watches.len();
    println!("{each} bytes a watch");
    assert!(each < 16 * 1024, "{each} bytes a watch");
    let created = send(&client, "POST", PATH, &config_map("a", "0")).await;
    assert_eq!(created.status(), 201);
    for watch in &mut watches {
        let event = next_event(watch).await.expect("an event");
        assert_eq!(event["object"]["metadata"]["name"], "a");
    }
}

/// A body of which the end never comes.
struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        std::task::Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_waited_for_a_minute() {
    let server = ApiServer::new(Config::default());
    let client = server.in_process(Identity::admin());
    let request = Request::post(PATH).body(Endless).expect("a request");
    let started = tokio::time::Instant::now();
    let answer = client.oneshot(request).await.expect("infallible");
    assert_eq!(answer.status(), 504);
    assert_eq!(started.elapsed(), Duration::from_mins(1));
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("whole")
        .to_bytes();
    let status: Value = serde_json::from_slice(&body).expect("a Status");
    assert_eq!(status["reason"], "Timeout");
}

/// Bytes of memory this process has.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    kib.expect("a size") * 1024
}
