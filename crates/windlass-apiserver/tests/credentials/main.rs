//! Nobody gets in who is not known: every endpoint of discovery, with every verb it has, is tried
//! over TLS without credentials and with credentials that are expired, forged or of another
//! cluster. What is answered was recorded from the real server (case `authentication`).

mod endpoint;
mod scene;
mod token;

use http::StatusCode;
use serde_json::Value;

use endpoint::Endpoint;
use scene::{Caller, Scene};

/// What kube-apiserver lets everybody see: its role `system:public-info-viewer`.
const OPEN: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// The body of a recorded answer.
fn recorded(step: &str) -> Value {
    let answers = include_str!("../recorded/answers/authentication.json");
    let answers: Vec<Value> = serde_json::from_str(answers).expect("JSON");
    let answer = answers.into_iter().find(|answer| answer["step"] == step);
    answer.unwrap_or_else(|| panic!("no step {step}"))["body"].clone()
}

fn is_open(endpoint: &Endpoint) -> bool {
    endpoint.method == "GET" && OPEN.contains(&endpoint.path.as_str())
}

/// Tries everything as somebody; tells how much that was.
async fn sweep(
    scene: &Scene,
    caller: &Caller,
    check: impl Fn(&Endpoint, StatusCode, &[u8]),
) -> usize {
    let endpoints = endpoint::all(scene).await;
    let revision = scene.server.revision();
    for endpoint in &endpoints {
        let (code, body) = caller.send(endpoint.method, &endpoint.path).await;
        check(endpoint, code, &body);
    }
    assert_eq!(scene.server.revision(), revision, "something was written");
    endpoints.len()
}

/// Somebody whose credentials are not good hears that, and nothing else, everywhere.
async fn is_turned_away(scene: &Scene, caller: &Caller) {
    let unauthorized = recorded("a bad token");
    let tried = sweep(scene, caller, |endpoint, code, body| {
        assert_eq!(code, 401, "{endpoint:?}");
        let body: Value = serde_json::from_slice(body).expect("JSON");
        assert_eq!(body, unauthorized, "{endpoint:?}");
    });
    assert!(tried.await > 500, "hardly anything was tried");
}

#[tokio::test]
async fn without_credentials_only_health_and_version_can_be_seen() {
    let scene = Scene::start().await;
    let nobody = scene.nobody().await;
    let tried = sweep(&scene, &nobody, |endpoint, code, body| {
        if is_open(endpoint) {
            assert_eq!(code, 200, "{endpoint:?}");
            return;
        }
        assert_eq!(code, 403, "{endpoint:?}");
        let body: Value = serde_json::from_slice(body).expect("JSON");
        let told = |part: &str| body[part].as_str().unwrap_or_default();
        assert_eq!(
            (told("kind"), told("reason")),
            ("Status", "Forbidden"),
            "{endpoint:?}"
        );
        let said = format!("User \"system:anonymous\" cannot {} ", endpoint.verb);
        assert!(told("message").contains(&said), "{endpoint:?}: {body}");
    });
    assert!(tried.await > 500, "hardly anything was tried");
    scene.stop().await;
}

#[tokio::test]
async fn tokens_that_are_expired_forged_or_of_another_cluster_open_nothing() {
    let scene = Scene::start().await;
    // The same token with nothing wrong about it is somebody, who may do nothing yet.
    let good = scene.with_token(&scene.token).await;
    let (code, body) = good.send("GET", "/api/v1/namespaces/default/secrets").await;
    assert_eq!(code, 403);
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    let message = body["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("system:serviceaccount:default:robot"),
        "{message}"
    );
    let resigned = token::resigned(&scene.token, &scene.key, |_| ());
    let (code, _) = scene.with_token(&resigned).await.send("GET", "/api").await;
    assert_eq!(
        code, 200,
        "a token signed here by the server's own key is a good one"
    );

    let now = jiff::Timestamp::now().as_second();
    let expired = token::resigned(&scene.token, &scene.key, |claims| {
        claims["exp"] = (now - 3600).into();
    });
    let early = token::resigned(&scene.token, &scene.key, |claims| {
        claims["nbf"] = (now + 3600).into();
    });
    let for_others = token::resigned(&scene.token, &scene.key, |claims| {
        claims["aud"] = serde_json::json!(["others"]);
    });
    let for_another = token::resigned(&scene.token, &scene.key, |claims| {
        claims["kubernetes.io"]["serviceaccount"]["uid"] = "another".into();
    });
    let foreign = scene.token_of_another_cluster().await;
    for token in [
        expired,
        early,
        for_others,
        for_another,
        foreign,
        token::with_claims_changed(&scene.token),
        token::unsigned(&scene.token),
    ] {
        is_turned_away(&scene, &scene.with_token(&token).await).await;
    }
    scene.stop().await;
}

#[tokio::test]
async fn certificates_that_are_expired_or_of_another_cluster_open_nothing() {
    let scene = Scene::start().await;
    let (code, _) = scene.admin().await.send("GET", "/api/v1/secrets").await;
    assert_eq!(
        code, 200,
        "the administrator's own certificate is a good one"
    );
    is_turned_away(&scene, &scene.with_foreign_certificate().await).await;
    is_turned_away(&scene, &scene.with_expired_certificate().await).await;
    scene.stop().await;
}

#[tokio::test]
async fn a_refused_certificate_leaves_it_to_the_token() {
    let scene = Scene::start().await;
    let stranger = scene.with_foreign_certificate().await;
    let path = "/api/v1/namespaces/default/secrets";
    let (code, body) = stranger.with(&scene.token).send("GET", path).await;
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(code, 403);
    let message = body["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("system:serviceaccount:default:robot"),
        "{message}"
    );
    scene.stop().await;
}
