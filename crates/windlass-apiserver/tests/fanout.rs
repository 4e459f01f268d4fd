//! A thousand watchers of one kind: how long after a write each of them has it.
//!
//! A benchmark: it prints, and judges nothing but that everybody hears of everything.
//! `make bench-watchers` runs it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::sync::{Barrier, mpsc};
use tower::ServiceExt as _;
use windlass_apiserver::{ApiServer, Config, Identity, InProcess};

const WATCHERS: usize = 1_000;
const WRITES: usize = 200;
const PATH: &str = "/api/v1/namespaces/default/configmaps";

async fn send(
    client: &InProcess,
    method: &str,
    path: &str,
    body: &Value,
) -> http::Response<windlass_apiserver::http::Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    client.clone().oneshot(request).await.expect("infallible")
}

/// What everybody hears of, and when.
async fn run(server: &ApiServer) -> Vec<Duration> {
    let client = server.in_process(Identity::admin());
    let data = "x".repeat(1_000);
    let object = |count: usize| json!({"metadata": {"name": "a"}, "data": {"count": count.to_string(), "rest": data}});
    send(&client, "POST", PATH, &object(0)).await;
    let path = format!("{PATH}?watch=1&resourceVersion={}", server.revision());
    let (told, mut heard) = mpsc::unbounded_channel();
    let ready = Arc::new(Barrier::new(WATCHERS + 1));
    for _ in 0..WATCHERS {
        let mut watch = send(&client, "GET", &path, &Value::Null).await.into_body();
        let (told, ready) = (told.clone(), ready.clone());
        tokio::spawn(async move {
            ready.wait().await;
            for _ in 0..WRITES {
                let chunk = watch.frame().await.expect("an event").expect("whole");
                let bytes = chunk.data_ref().map_or(0, Bytes::len);
                if told.send((Instant::now(), bytes)).is_err() {
                    return;
                }
            }
        });
    }
    ready.wait().await;
    let mut delays = Vec::with_capacity(WATCHERS * WRITES);
    for count in 1..=WRITES {
        let started = Instant::now();
        let written = send(&client, "PUT", &format!("{PATH}/a"), &object(count)).await;
        assert_eq!(written.status(), 200);
        for _ in 0..WATCHERS {
            let (at, bytes) = heard.recv().await.expect("everybody hears");
            assert!(bytes > data.len());
            delays.push(at - started);
        }
    }
    delays.sort_unstable();
    delays
}

fn print(what: &str, delays: &[Duration]) {
    let at = |share: usize| delays[(delays.len() - 1) * share / 100];
    println!(
        "{what}: {WATCHERS} watchers, {WRITES} writes, from the request to each delivery: p50 {:?}, p99 {:?}, last {:?}",
        at(50),
        at(99),
        at(100)
    );
}

#[test]
#[ignore = "a benchmark: `make bench-watchers` runs it"]
fn a_thousand_watchers_hear_of_every_write() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(async {
        print("in memory", &run(&ApiServer::new(Config::default())).await);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let server = ApiServer::open(Config::default(), folder.path()).expect("an empty folder");
        print("durable", &run(&server).await);
    });
}
