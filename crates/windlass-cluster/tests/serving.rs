//! Probes, metrics and the debug page over real sockets: who gets what.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::PostParams;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use windlass::{
    Action, Context, Controller, Declare, Operator, Reconciler, Result,
    run::{Endpoint, Readers},
    testing::Environment,
};
use windlass_apiserver::hooks::{HookFuture, Hooks, Outcome, Reply};
use windlass_apiserver::http::ResourceRequest;
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

/// A process of this test that serves probes and may have few files open.
#[tokio::test]
#[ignore = "a process that the other test starts"]
async fn probes_with_few_files() {
    use rustix::process::{Resource, Rlimit, setrlimit};

    let Some(path) = std::env::var_os("ADDRESS") else {
        return;
    };
    let running = operator().start(client(), Environment::default());
    running.synced().await;
    let probes = Endpoint::probes(LOOPBACK.into(), running.debug())
        .await
        .unwrap();
    let limit = Rlimit {
        current: Some(FILES),
        maximum: Some(FILES),
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let text = probes.address().to_string();
    let whole = std::path::Path::new(&path).with_extension("whole");
    std::fs::write(&whole, text).unwrap();
    std::fs::rename(&whole, &path).unwrap();
    std::future::pending::<()>().await;
}

/// How many files the process may have open: fewer than the connections it would take at once.
const FILES: u64 = 64;

/// The processor time that a process has used, in ticks of a hundredth of a second.
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Any pod can connect to the port of the probes. Connections that say nothing used to stay for
/// ever, and the process to spin when it could take no more of them.
#[tokio::test]
async fn idle_connections_neither_keep_probes_from_answers_nor_use_the_processor() {
    let name = format!("windlass-probes-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut process = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "probes_with_few_files", "--ignored"])
        .env("ADDRESS", &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let patience = std::time::Duration::from_mins(4);
    let checked = tokio::time::timeout(patience, async {
        let address = loop {
            match std::fs::read_to_string(&path) {
                Ok(text) => break text.parse::<SocketAddr>().unwrap(),
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            }
        };
        let before = ticks(process.id());
        let mut idle = Vec::new();
        for _ in 0..FILES {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        // They all stay open at this end; the server closes them, and answers again.
        let answer = get(address, "/healthz").await;
        drop(idle);
        (answer, ticks(process.id()) - before)
    });
    let checked = checked.await;
    process.kill().unwrap();
    process.wait().unwrap();
    let _ = std::fs::remove_file(&path);
    let (answer, used) = checked.expect("the probe is answered in the end");
    assert_eq!(answer, (200, "ok".to_owned()));
    assert!(used < 500, "{used} hundredths of a second of the processor");
}

/// An HTTP/2 connection that has been answered once, and goes on answering pings. Dropped, it ends.
async fn lasting(address: SocketAddr) -> (http2::SendRequest<Empty<Bytes>>, JoinSet<()>) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let _ = connection.await;
    });
    let uri = format!("http://{address}/healthz");
    let request = http::Request::get(uri).body(Empty::new()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    (sender, tasks)
}

/// A peer that answers pings could keep its connections for ever, and there are only so many.
#[tokio::test]
async fn connections_that_last_do_not_keep_probes_from_answers() {
    let running = operator().start(client(), Environment::default());
    running.synced().await;
    let probes = Endpoint::probes(LOOPBACK.into(), running.debug())
        .await
        .unwrap();
    let patience = std::time::Duration::from_mins(2);
    let checked = tokio::time::timeout(patience, async {
        let mut lasting_ones = Vec::new();
        for _ in 0..300 {
            lasting_ones.push(lasting(probes.address()).await);
        }
        // The first ones had to go for the last ones; those that are in use stay.
        let last = lasting_ones.last_mut().unwrap();
        let uri = format!("http://{}/healthz", probes.address());
        let request = http::Request::get(uri).body(Empty::new()).unwrap();
        let answer = last.0.send_request(request).await.unwrap();
        (answer.status(), get(probes.address(), "/healthz").await)
    });
    let answers = checked.await.expect("probes are answered all the while");
    assert_eq!(answers, (http::StatusCode::OK, (200, "ok".to_owned())));
}

/// Everyone who can connect used to cost the API server a review for each request.
#[tokio::test]
async fn token_that_is_unknown_is_reviewed_once() {
    let reviews = Arc::new(Reviews::default());
    let server = ApiServer::new(Config {
        hooks: Some(reviews.clone()),
        ..Config::default()
    });
    let client = Client::new(server.in_process(Identity::admin()), "default");
    let running = operator().start(client.clone(), Environment::default());
    let readers = Readers::Reviewed(client);
    let metrics = Endpoint::metrics(LOOPBACK.into(), running.debug(), readers)
        .await
        .unwrap();
    for _ in 0..5 {
        let stream = TcpStream::connect(metrics.address()).await.unwrap();
        let name = "localhost".try_into().unwrap();
        let stream = trusting_anybody().connect(name, stream).await.unwrap();
        assert_eq!(ask(stream, "/metrics", Some("nonsense")).await.0, 401);
    }
    assert_eq!(reviews.all.load(Ordering::Relaxed), 1);
}

/// So did tokens that were each another one, as many at a time as there were requests.
#[tokio::test]
async fn tokens_that_are_unknown_are_reviewed_a_few_at_a_time() {
    let reviews = Arc::new(Reviews::default());
    let server = ApiServer::new(Config {
        hooks: Some(reviews.clone()),
        ..Config::default()
    });
    let client = Client::new(server.in_process(Identity::admin()), "default");
    let running = operator().start(client.clone(), Environment::default());
    let readers = Readers::Reviewed(client);
    let metrics = Endpoint::metrics(LOOPBACK.into(), running.debug(), readers)
        .await
        .unwrap();
    let address = metrics.address();
    let mut asking = JoinSet::new();
    for number in 0..16 {
        asking.spawn(async move {
            let stream = TcpStream::connect(address).await.unwrap();
            let name = "localhost".try_into().unwrap();
            let stream = trusting_anybody().connect(name, stream).await.unwrap();
            let token = format!("nonsense-{number}");
            ask(stream, "/metrics", Some(&token)).await.0
        });
    }
    let answers = asking.join_all().await;
    assert_eq!(answers, [401; 16]);
    assert_eq!(reviews.all.load(Ordering::Relaxed), 16);
    assert!(reviews.most.load(Ordering::Relaxed) <= 4, "{reviews:?}");
}

/// Counts reviews of tokens, and takes a moment for each.
#[derive(Debug, Default)]
struct Reviews {
    all: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Hooks for Reviews {
    fn after<'a>(
        &'a self,
        _: &'a Identity,
        request: &'a ResourceRequest,
        _: Outcome,
    ) -> HookFuture<'a, Reply> {
        Box::pin(async move {
            if request.resource == "tokenreviews" {
                self.all.fetch_add(1, Ordering::Relaxed);
                let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
                self.most.fetch_max(now, Ordering::Relaxed);
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                self.now.fetch_sub(1, Ordering::Relaxed);
            }
            Reply::Send
        })
    }
}

/// The certificate is the server's own, known to nobody: what matters here is who asks.
fn trusting_anybody() -> tokio_rustls::TlsConnector {
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
