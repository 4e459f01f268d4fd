//! Events are forgotten some time after they were written last.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;
use windlass_apiserver::{ApiServer, Clock, Config, Identity, Random};

const EVENTS: &str = "/api/v1/namespaces/default/events";

async fn send(server: &ApiServer, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(
            body.map_or(String::new(), |body| body.to_string()),
        )))
        .unwrap();
    let answer = server
        .in_process(Identity::admin())
        .oneshot(request)
        .await
        .unwrap();
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let lines = String::from_utf8_lossy(&bytes);
    let body = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    (code, body.collect())
}

fn server(event_ttl: Duration) -> ApiServer {
    ApiServer::new(Config {
        clock: Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()),
        random: Random::seeded(1),
        event_ttl,
        ..Config::default()
    })
}

fn event(count: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}, "count": count, "involvedObject": {"namespace": "default"}})
}

#[tokio::test(start_paused = true)]
async fn an_event_goes_an_hour_after_its_last_write() {
    let server = server(Config::default().event_ttl);
    let path = format!("{EVENTS}/e");
    assert_eq!(send(&server, "POST", EVENTS, Some(event(1))).await.0, 201);
    tokio::time::sleep(Duration::from_mins(50)).await;
    assert_eq!(send(&server, "PUT", &path, Some(event(2))).await.0, 200);
    tokio::time::sleep(Duration::from_mins(50)).await;
    assert_eq!(
        send(&server, "GET", &path, None).await.0,
        200,
        "the write renewed it"
    );
    tokio::time::sleep(Duration::from_mins(11)).await;
    assert_eq!(send(&server, "GET", &path, None).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn watches_of_both_groups_see_it_go() {
    let server = server(Duration::from_secs(30));
    assert_eq!(send(&server, "POST", EVENTS, Some(event(1))).await.0, 201);
    for events in [EVENTS, "/apis/events.k8s.io/v1/namespaces/default/events"] {
        let watch = format!("{events}?watch=1&timeoutSeconds=60&resourceVersion=1");
        let (code, seen) = send(&server, "GET", &watch, None).await;
        assert_eq!(code, 200);
        let kinds: Vec<&str> = seen
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|one| one["type"].as_str())
            .collect();
        assert_eq!(kinds, ["ADDED", "DELETED"], "{seen}");
    }
}
