//! Tokens of `ServiceAccount`s: good until they expire, and only on the server whose key signed them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};
use tower::Service as _;
use windlass_apiserver::{ApiServer, Clock, Config, Identity, Random, SigningKey};

fn server(key: &SigningKey) -> ApiServer {
    ApiServer::new(Config {
        clock: Clock::starting_at("2030-01-01T00:00:00Z".parse().unwrap()),
        random: Random::seeded(1),
        service_account_key: Some(key.clone()),
        ..Config::default()
    })
}

async fn post(server: &ApiServer, path: &str, body: Value) -> Value {
    let request = Request::post(path)
        .body(Full::new(bytes::Bytes::from(body.to_string())))
        .unwrap();
    let answer = server.in_process(Identity::admin()).call(request).await;
    let body = answer.unwrap().into_body().collect().await.unwrap();
    serde_json::from_slice(&body.to_bytes()).unwrap()
}

/// What a server answers to a request for discovery with this token.
async fn status(server: &ApiServer, token: &str) -> StatusCode {
    let request = Request::get("/api")
        .header("authorization", format!("Bearer {token}"))
        .body(Full::<bytes::Bytes>::default())
        .unwrap();
    let answer = server.in_process_unauthenticated().call(request).await;
    answer.unwrap().status()
}

async fn token(server: &ApiServer) -> String {
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    post(server, accounts, account).await;
    let request = json!({"spec": {"expirationSeconds": 600}});
    let made = post(server, &format!("{accounts}/robot/token"), request).await;
    made["status"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_is_nobodys() {
    let server = server(&SigningKey::generate().unwrap());
    let token = token(&server).await;
    assert_eq!(status(&server, &token).await, 200);
    tokio::time::advance(Duration::from_mins(10)).await;
    // Clocks may be a minute apart.
    assert_eq!(status(&server, &token).await, 200);
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(status(&server, &token).await, 401);
}

#[tokio::test(start_paused = true)]
async fn a_token_of_another_server_is_nobodys() {
    let key = SigningKey::generate().unwrap();
    let ours = server(&key);
    let token = token(&ours).await;
    // The same account is there too, but the key is another, or the account is.
    let foreign = server(&SigningKey::generate().unwrap());
    self::token(&foreign).await;
    assert_eq!(status(&foreign, &token).await, 401);
    let again = server(&key);
    assert_eq!(status(&again, &token).await, 401);
    self::token(&again).await;
    // Seeded alike, it gives the account the same uid: a server started again with its key and
    // its objects goes on accepting its tokens.
    assert_eq!(status(&again, &token).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_changed_token_is_nobodys() {
    let server = server(&SigningKey::generate().unwrap());
    let token = token(&server).await;
    let mut parts: Vec<&str> = token.split('.').collect();
    let stolen = "eyJzdWIiOiJzeXN0ZW06bWFzdGVycyJ9";
    parts[1] = stolen;
    assert_eq!(status(&server, &parts.join(".")).await, 401);
    let (unsigned, _) = token.rsplit_once('.').unwrap();
    for forged in [unsigned, &format!("{unsigned}."), "a.b.c", ".."] {
        assert_eq!(status(&server, forged).await, 401, "{forged}");
    }
    // None at all is no credential: whoever sends it is anonymous.
    assert_eq!(status(&server, "").await, 403);
}

#[tokio::test]
async fn published_key_verifies_a_token() {
    let server = server(&SigningKey::generate().unwrap());
    let get = async |path: &str| -> Value {
        let request = Request::get(path)
            .body(Full::<bytes::Bytes>::default())
            .unwrap();
        let answer = server.in_process(Identity::admin()).call(request).await;
        let body = answer.unwrap().into_body().collect().await.unwrap();
        serde_json::from_slice(&body.to_bytes()).unwrap()
    };
    let configuration = get("/.well-known/openid-configuration").await;
    assert_eq!(
        configuration["issuer"],
        "https://kubernetes.default.svc.cluster.local"
    );
    let place = configuration["jwks_uri"].as_str().unwrap();
    assert!(place.ends_with("/openid/v1/jwks"), "{place}");
    let keys = get("/openid/v1/jwks").await;
    let key = &keys["keys"][0];
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
    let part = |name: &str| decode(key[name].as_str().unwrap());
    let point = [&[4][..], &part("x"), &part("y")].concat();
    let token = token(&server).await;
    let (message, signature) = token.rsplit_once('.').unwrap();
    let header: Value =
        serde_json::from_slice(&decode(message.split('.').next().unwrap())).unwrap();
    assert_eq!(header["kid"], key["kid"]);
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(message.as_bytes(), &decode(signature))
        .unwrap();
}
