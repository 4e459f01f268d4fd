//! `/metrics`: what was asked for can be read off it, under kube-apiserver's names.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::Service as _;
use windlass_apiserver::http::Body;
use windlass_apiserver::{ApiServer, Config, Identity};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

async fn send(server: &ApiServer, method: &str, path: &str, body: &Value) -> http::Response<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let answer = server.in_process(Identity::admin()).call(request).await;
    answer.expect("infallible")
}

/// The value of the one series that has all of these in its name and labels.
async fn value(server: &ApiServer, parts: &[&str]) -> Option<f64> {
    let answer = send(server, "GET", "/metrics", &Value::Null).await;
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.expect("whole");
    let text = String::from_utf8(body.to_bytes().to_vec()).expect("text");
    let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
    let mut lines = text.lines().filter(has_all);
    let (line, more) = (lines.next()?, lines.next());
    assert_eq!(more, None, "{parts:?} say more than one series");
    line.rsplit_once(' ')?.1.parse().ok()
}

#[tokio::test]
async fn requests_are_counted_by_verb_resource_scope_and_status() {
    let server = ApiServer::new(Config::default());
    let object = json!({"metadata": {"name": "a"}});
    for _ in 0..2 {
        send(&server, "POST", PATH, &object).await;
    }
    send(&server, "POST", &format!("{PATH}?dryRun=All"), &object).await;
    send(&server, "GET", &format!("{PATH}/a"), &Value::Null).await;
    send(&server, "GET", PATH, &Value::Null).await;
    send(&server, "GET", "/api/v1/configmaps", &Value::Null).await;
    let total = |labels: &'static str| {
        let server = &server;
        async move { value(server, &["apiserver_request_total{", labels]).await }
    };
    let of = r#"group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1""#;
    let counted = |code: &str, dry_run: &str| {
        format!(
            r#"apiserver_request_total{{code="{code}",component="apiserver",dry_run="{dry_run}",{of}}}"#
        )
    };
    assert_eq!(value(&server, &[&counted("201", "")]).await, Some(1.0));
    assert_eq!(value(&server, &[&counted("409", "")]).await, Some(1.0));
    assert_eq!(value(&server, &[&counted("409", "All")]).await, Some(1.0));
    assert_eq!(
        total(r#"scope="resource",subresource="",verb="GET""#).await,
        Some(1.0)
    );
    assert_eq!(
        total(r#"scope="namespace",subresource="",verb="LIST""#).await,
        Some(1.0)
    );
    assert_eq!(
        total(r#"scope="cluster",subresource="",verb="LIST""#).await,
        Some(1.0)
    );
    let seconds = [
        "apiserver_request_duration_seconds_bucket",
        r#"dry_run="","#,
        r#"verb="POST""#,
        r#"le="+Inf""#,
    ];
    assert_eq!(value(&server, &seconds).await, Some(2.0));
}

#[tokio::test]
async fn who_is_refused_is_counted_too() {
    let server = ApiServer::new(Config::default());
    let request = Request::get(PATH)
        .body(Full::<Bytes>::default())
        .expect("a request");
    let answer = server.in_process_unauthenticated().call(request).await;
    assert_eq!(answer.expect("infallible").status(), 403);
    let refused = [r#"apiserver_request_total{code="403""#, r#"verb="LIST""#];
    assert_eq!(value(&server, &refused).await, Some(1.0));
}

#[tokio::test]
async fn watches_are_counted_while_they_last_and_objects_while_they_are_there() {
    let server = ApiServer::new(Config::default());
    let lasting = ["apiserver_longrunning_requests{", "configmaps", "WATCH"];
    let stored = [r#"apiserver_resource_objects{group="",resource="configmaps"}"#];
    assert_eq!(value(&server, &lasting).await, None);
    let watch = send(&server, "GET", &format!("{PATH}?watch=1"), &Value::Null).await;
    assert_eq!(value(&server, &lasting).await, Some(1.0));
    drop(watch);
    assert_eq!(value(&server, &lasting).await, None);
    let before = value(&server, &stored).await.unwrap_or_default();
    send(&server, "POST", PATH, &json!({"metadata": {"name": "a"}})).await;
    assert_eq!(value(&server, &stored).await, Some(before + 1.0));
    let apps = [
        r#"apiserver_resource_objects{group="rbac.authorization.k8s.io",resource="clusterroles"}"#,
    ];
    assert!(value(&server, &apps).await > Some(1.0));
}
