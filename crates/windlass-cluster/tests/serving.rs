//! Probes, metrics and the debug page over real sockets: who gets what.

use std::net::SocketAddr;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::PostParams;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass::{
    Action, Context, Controller, Declare, Operator, Reconciler, Result,
    run::{Endpoint, Readers},
    testing::Environment,
};
use windlass_apiserver::{ApiServer, Config, Identity};

struct Idle;

impl Reconciler for Idle {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<ConfigMap>) -> Result<Action> {
        Ok(Action::done())
    }
}

fn operator() -> Operator {
    let declare = |_: &mut Declare<ConfigMap>| Idle;
    Operator::new("idle").controller(Controller::of_existing().reconciler(declare))
}

fn client() -> Client {
    let server = ApiServer::new(Config::default());
    Client::new(server.in_process(Identity::admin()), "default")
}

/// A GET by hand, in the clear.
async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let stream = TcpStream::connect(address).await.unwrap();
    ask(stream, path, None).await
}

async fn ask<S>(mut stream: S, path: &str, token: Option<&str>) -> (u16, String)
where
    S: AsyncReadExt + AsyncWriteExt + Unpin,
{
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let token = token.unwrap_or_default();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{token}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A TLS peer that just closes is an error only after the answer.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, body.to_owned())
}

const LOOPBACK: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

#[tokio::test]
async fn probes_and_pages_on_loopback() {
    let running = operator().start(client(), Environment::default());
    let probes = Endpoint::probes(LOOPBACK.into(), running.debug())
        .await
        .unwrap();
    running.synced().await;
    let metrics = Endpoint::metrics(LOOPBACK.into(), running.debug(), Readers::Anybody);
    let metrics = metrics.await.unwrap();
    assert_eq!(
        get(probes.address(), "/healthz").await,
        (200, "ok".to_owned())
    );
    assert_eq!(
        get(probes.address(), "/readyz").await,
        (200, "ok".to_owned())
    );
    assert_eq!(get(probes.address(), "/metrics").await.0, 404);
    let (code, text) = get(metrics.address(), "/metrics").await;
    assert_eq!(code, 200);
    assert!(
        text.contains("controller_runtime_max_concurrent_reconciles{controller=\"configmap\"} 10")
    );
    let (code, page) = get(metrics.address(), "/debug/windlass").await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!((code, &page["operator"]), (200, &json!("idle")));
    assert_eq!(page["caches"][0]["resource"], "configmaps");
    assert_eq!(page["queues"][0]["controller"], "configmap");
    let address = probes.address();
    drop(probes);
    tokio::task::yield_now().await;
    assert!(
        TcpStream::connect(address).await.is_err(),
        "ended with its owner"
    );
}

#[tokio::test]
async fn not_ready_names_what_is_missing() {
    let declare = |declare: &mut Declare<ConfigMap>| {
        use kube::core::DynamicObject;
        use windlass::{Watched, kind::KindInfo};
        let kind = KindInfo {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Widget".to_owned(),
            plural: "widgets".to_owned(),
            namespaced: true,
        };
        declare.reads_kind(&kind, DynamicObject::triggering_none());
        Idle
    };
    let operator = Operator::new("idle").controller(Controller::of_existing().reconciler(declare));
    let running = operator.start(client(), Environment::default());
    let probes = Endpoint::probes(LOOPBACK.into(), running.debug())
        .await
        .unwrap();
    let expected = "waiting for cache to sync: widgets.example.com (not served)\n".to_owned();
    let expected = (500, expected);
    let patience = std::time::Duration::from_mins(1);
    let said = tokio::time::timeout(patience, async {
        while get(probes.address(), "/readyz").await != expected {}
    });
    said.await.expect("what is missing is named");
    let limit = std::time::Duration::ZERO;
    assert!(running.synced_within(limit).await.is_err());
    assert_eq!(get(probes.address(), "/healthz").await.0, 200);
}

async fn create<K>(client: &Client, namespace: Option<&str>, object: Value)
where
    K: kube::Resource<DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + DeserializeOwned,
{
    let resource = kube::core::ApiResource::erase::<K>(&());
    let api: Api<kube::core::DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

async fn token(client: &Client, name: &str) -> String {
    create::<ServiceAccount>(client, Some("default"), json!({"metadata": {"name": name}})).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let request = TokenRequest {
        spec: Some(TokenRequestSpec::default()),
        ..TokenRequest::default()
    };
    let made = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await;
    made.unwrap().status.unwrap().token.unwrap()
}

#[tokio::test]
async fn metrics_are_for_those_whom_the_api_server_allows() {
    let client = client();
    let running = operator().start(client.clone(), Environment::default());
    let readers = Readers::Reviewed(client.clone());
    let metrics = Endpoint::metrics(LOOPBACK.into(), running.debug(), readers)
        .await
        .unwrap();
    let (scraper, stranger) = (
        token(&client, "scraper").await,
        token(&client, "stranger").await,
    );
    let rules = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    let role = json!({"metadata": {"name": "reader"}, "rules": rules});
    create::<ClusterRole>(&client, None, role).await;
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": "default"}],
    });
    create::<ClusterRoleBinding>(&client, None, binding).await;
    // In the clear nobody gets anything.
    let mut plain = TcpStream::connect(metrics.address()).await.unwrap();
    plain
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
    let ask_tls = |path: &'static str, token: Option<String>| {
        let address = metrics.address();
        async move {
            let stream = TcpStream::connect(address).await.unwrap();
            let connector = trusting_anybody();
            let name = "localhost".try_into().unwrap();
            let stream = connector.connect(name, stream).await.unwrap();
            ask(stream, path, token.as_deref()).await
        }
    };
    assert_eq!(ask_tls("/metrics", None).await.0, 401);
    assert_eq!(
        ask_tls("/metrics", Some("nonsense".to_owned())).await.0,
        401
    );
    assert_eq!(ask_tls("/metrics", Some(stranger)).await.0, 403);
    assert_eq!(
        ask_tls("/debug/windlass", Some(scraper.clone())).await.0,
        403
    );
    let (code, text) = ask_tls("/metrics", Some(scraper)).await;
    assert_eq!(code, 200);
    assert!(text.contains("workqueue_depth"));
}

/// The certificate is the server's own, known to nobody: what matters here is who asks.
fn trusting_anybody() -> tokio_rustls::TlsConnector {
    use std::sync::Arc;

    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, Error, SignatureScheme};

    #[derive(Debug)]
    struct Anybody;

    impl ServerCertVerifier for Anybody {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![
                SignatureScheme::ECDSA_NISTP256_SHA256,
                SignatureScheme::ED25519,
                SignatureScheme::RSA_PSS_SHA256,
            ]
        }
    }

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    tokio_rustls::TlsConnector::from(Arc::new(config))
}
