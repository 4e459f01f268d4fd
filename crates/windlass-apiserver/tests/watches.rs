//! What of watches takes too long to be recorded, by what Kubernetes' source says of it.

use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;
use windlass_apiserver::{ApiServer, Clock, Config, Identity, Random};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

fn client() -> Client {
    let server = ApiServer::new(Config {
        clock: Clock::starting_at(jiff::Timestamp::UNIX_EPOCH),
        random: Random::seeded(7),
        ..Config::default()
    });
    Client::new(server.in_process(Identity::admin()), "default")
}

async fn sent(client: &Client, method: &str, path: &str, body: Option<Value>) -> Body {
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(body.into_bytes()))
        .unwrap();
    client.send(request).await.unwrap().into_body()
}

/// The next events of a watch; empty when it ended.
async fn next(watch: &mut Body) -> Vec<Value> {
    let Some(frame) = watch.frame().await else {
        return Vec::new();
    };
    let bytes = frame.unwrap().into_data().unwrap();
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_once_a_minute_when_asked_for() {
    let client = client();
    let path = format!("{CONFIGMAPS}?watch=1&resourceVersion=0&allowWatchBookmarks=true");
    let mut watch = sent(&client, "GET", &path, None).await;
    for _ in 0..3 {
        let began = Instant::now();
        let events = next(&mut watch).await;
        assert_eq!(events[0]["type"], "BOOKMARK");
        assert_eq!(began.elapsed().as_secs(), 60);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_limit_ends_within_an_hour() {
    let client = client();
    let mut watch = sent(&client, "GET", &format!("{CONFIGMAPS}?watch=1"), None).await;
    let began = Instant::now();
    assert!(next(&mut watch).await.is_empty());
    let lasted = began.elapsed();
    assert!(lasted >= Duration::from_mins(30), "{lasted:?}");
    assert!(lasted <= Duration::from_hours(1), "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fell_behind_is_told_so() {
    let client = client();
    let object = |n: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": n.to_string()}});
    let made = sent(&client, "POST", CONFIGMAPS, Some(object(0))).await;
    let made: Value = serde_json::from_slice(&made.collect().await.unwrap().to_bytes()).unwrap();
    let version = made["metadata"]["resourceVersion"].as_str().unwrap();
    // More than are kept.
    for n in 1..=9_000 {
        sent(&client, "PUT", &format!("{CONFIGMAPS}/a"), Some(object(n))).await;
    }
    let path = format!("{CONFIGMAPS}?watch=1&resourceVersion={version}&timeoutSeconds=1");
    let mut watch = sent(&client, "GET", &path, None).await;
    let events = next(&mut watch).await;
    assert_eq!(events[0]["type"], "ERROR");
    assert_eq!(events[0]["object"]["code"], 410);
    assert_eq!(events[0]["object"]["reason"], "Expired");
    assert!(next(&mut watch).await.is_empty(), "and it ends");
}
