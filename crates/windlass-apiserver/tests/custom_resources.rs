//! Custom resources over time: watches and the definitions they watch, and rules that cost too much.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::Service as _;
use windlass_apiserver::{ApiServer, Config, Identity};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/x.io/v1/namespaces/default/things";

fn request(method: Method, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let media_type = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .body(Full::new(Bytes::from(body)))
        .unwrap()
}

async fn send(server: &ApiServer, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
    let answer = server
        .in_process(Identity::admin())
        .call(request(method, path, &body))
        .await
        .unwrap();
    let code = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

fn definition(spec: &Value) -> Value {
    json!({
        "metadata": {"name": "things.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": spec},
            }}}],
        },
    })
}

async fn with_things(spec: &Value) -> ApiServer {
    let server = ApiServer::new(Config::default());
    let (code, made) = send(&server, Method::POST, CRDS, definition(spec)).await;
    assert_eq!(code, StatusCode::CREATED, "{made}");
    let namespace = json!({"metadata": {"name": "default"}});
    send(&server, Method::POST, "/api/v1/namespaces", namespace).await;
    server
}

fn thing(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec})
}

/// Watches while something is done, and tells what the watch saw until the server ended it; it
/// must not last its whole time.
async fn watch_while(server: &ApiServer, doing: impl Future<Output = ()>) -> Vec<String> {
    let started = tokio::time::Instant::now();
    let path = format!("{THINGS}?watch=true&timeoutSeconds=86400");
    let watch = server
        .in_process(Identity::admin())
        .call(request(Method::GET, &path, &Value::Null))
        .await
        .unwrap();
    assert_eq!(watch.status(), StatusCode::OK);
    let watch = tokio::spawn(watch.into_body().collect());
    doing.await;
    let body = watch.await.unwrap().unwrap().to_bytes();
    assert!(started.elapsed() < Duration::from_mins(1));
    body.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            let event: Value = serde_json::from_slice(line).unwrap();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let name = text(&event["object"]["metadata"]["name"]);
            format!("{} {name}", text(&event["type"]))
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_the_definition_changes() {
    let server =
        with_things(&json!({"type": "object", "properties": {"a": {"type": "string"}}})).await;
    send(&server, Method::POST, THINGS, thing("one", &json!({}))).await;
    let seen = watch_while(&server, async {
        // What does not change how objects are served does not end it.
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        send(
            &server,
            Method::PATCH,
            &format!("{CRDS}/things.x.io"),
            labels,
        )
        .await;
        send(&server, Method::POST, THINGS, thing("two", &json!({}))).await;
        let names = json!({"spec": {"names": {"shortNames": ["th"]}}});
        let (code, _) = send(
            &server,
            Method::PATCH,
            &format!("{CRDS}/things.x.io"),
            names,
        )
        .await;
        assert_eq!(code, StatusCode::OK);
    })
    .await;
    assert_eq!(seen, ["ADDED one", "ADDED two"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_sees_the_objects_of_a_deleted_definition_go_and_ends() {
    let server = with_things(&json!({"type": "object"})).await;
    send(&server, Method::POST, THINGS, thing("one", &json!({}))).await;
    let seen = watch_while(&server, async {
        let path = format!("{CRDS}/things.x.io");
        send(&server, Method::DELETE, &path, Value::Null).await;
    })
    .await;
    assert_eq!(seen, ["ADDED one", "DELETED one"]);
    let (code, _) = send(&server, Method::GET, THINGS, Value::Null).await;
    assert_eq!(code, StatusCode::NOT_FOUND);
    let (code, _) = send(
        &server,
        Method::POST,
        CRDS,
        definition(&json!({"type": "object"})),
    )
    .await;
    assert_eq!(code, StatusCode::CREATED, "it can come again");
    let (_, list) = send(&server, Method::GET, THINGS, Value::Null).await;
    assert_eq!(list["items"], json!([]));
}

/// A rule that passes what is told of its cost, on an object made to make it cost most.
#[tokio::test]
async fn an_expensive_rule_does_not_stall_the_server() {
    let items = json!({"type": "array", "maxItems": 80, "items": {"type": "integer"}});
    let rule = "self.l.all(a, self.l.all(b, self.l.exists_one(c, a + b == c) || true))";
    let server = with_things(&json!({
        "type": "object",
        "properties": {"l": items.clone(), "m": items},
        "x-kubernetes-validations": [{"rule": rule}],
    }))
    .await;
    let numbers: Vec<i64> = (0..80).collect();
    let started = std::time::Instant::now();
    let (code, answer) = send(
        &server,
        Method::POST,
        THINGS,
        thing("one", &json!({"l": numbers})),
    )
    .await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("call cost exceeds limit"), "{message}");
    // Debug builds on a busy machine take a while; a rule that is not stopped takes far longer.
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_rule_that_cannot_be_run_is_refused_with_the_reason() {
    let server = ApiServer::new(Config::default());
    let crd = definition(&json!({
        "type": "object",
        "properties": {"l": {"type": "array", "maxItems": 3, "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{"rule": "self.l.sortBy(x, -x)[0] > 0"}],
    }));
    let (code, answer) = send(&server, Method::POST, CRDS, crd).await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
    let message = answer["message"].as_str().unwrap();
    assert!(
        message.contains("macro 'sortBy' is not run by this version"),
        "{message}"
    );
}
