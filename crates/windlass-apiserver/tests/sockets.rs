//! Watches by WebSocket, as browsers and fabric8 make them.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures::StreamExt as _;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use tower::Service as _;
use windlass_apiserver::http::{Serving, TlsConfig};
use windlass_apiserver::pki::Authority;
use windlass_apiserver::{ApiServer, Config, Identity};

const LIMIT: Duration = Duration::from_mins(1);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

type Socket = WebSocketStream<TlsStream<TcpStream>>;

/// A server on a port, and the token of an account that may do everything.
struct Scene {
    server: ApiServer,
    serving: Serving,
    connector: TlsConnector,
    token: String,
}

impl Scene {
    async fn start() -> Self {
        let authority = Authority::create().expect("an authority");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let ca = authority.pem().certificate.clone();
        let tls = TlsConfig {
            serving: authority
                .server("kube-apiserver", &[[127, 0, 0, 1].into()], &["localhost"])
                .expect("a certificate"),
            client_ca: ca.clone(),
        };
        let server = ApiServer::new(Config::default());
        let serving = server.serve(listener, &tls).expect("it serves");
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(ca.as_bytes()).expect("PEM");
        roots.add(ca).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut scene = Self {
            server,
            serving,
            connector: TlsConnector::from(Arc::new(config)),
            token: String::new(),
        };
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        scene.post(accounts, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})).await;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "robot"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
        });
        scene
            .post(
                "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                binding,
            )
            .await;
        let made = scene
            .post(&format!("{accounts}/robot/token"), json!({}))
            .await;
        let token = made["status"]["token"].as_str().expect("a token");
        token.clone_into(&mut scene.token);
        scene
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let request = Request::post(path)
            .body(Full::new(Bytes::from(body.to_string())))
            .expect("a request");
        let answer = self
            .server
            .in_process(Identity::admin())
            .call(request)
            .await;
        let body = answer.expect("an answer").into_body().collect().await;
        serde_json::from_slice(&body.expect("a body").to_bytes()).expect("JSON")
    }

    async fn map(&self, name: &str) {
        self.post(
            MAPS,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}),
        )
        .await;
    }

    /// Asks for a WebSocket with these headers.
    async fn open(
        &self,
        query: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Socket, tungstenite::Error> {
        let address = self.serving.address;
        let stream = TcpStream::connect(address).await.expect("a connection");
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = self
            .connector
            .connect(name, stream)
            .await
            .expect("a handshake");
        let url = format!("wss://{address}{MAPS}?{query}");
        let mut request = url.into_client_request().expect("a request");
        for (name, value) in headers {
            let value = value.parse().expect("a value");
            request.headers_mut().insert(*name, value);
        }
        let opened = tokio::time::timeout(LIMIT, client_async(request, stream)).await;
        opened.expect("an answer in time").map(|(socket, _)| socket)
    }
}

/// The next event: its type, and the name of its object.
async fn event(socket: &mut Socket) -> (String, String) {
    let message = tokio::time::timeout(LIMIT, socket.next()).await;
    let message = message
        .expect("a message in time")
        .expect("a message")
        .expect("a message");
    let Message::Text(text) = &message else {
        panic!("{message:?} is no text");
    };
    assert!(text.ends_with('\n'), "{text}");
    let event: Value = serde_json::from_str(text).expect("JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&event["type"]),
        text(&event["object"]["metadata"]["name"]),
    )
}

#[tokio::test]
async fn watch_by_websocket_sends_each_event_as_a_text_and_answers_a_close() {
    let scene = Scene::start().await;
    let bearer = format!("Bearer {}", scene.token);
    let headers = [
        ("origin", "https://localhost"),
        ("authorization", bearer.as_str()),
    ];
    let mut socket = scene.open("watch=true", &headers).await.expect("a socket");
    scene.map("one").await;
    assert_eq!(
        event(&mut socket).await,
        ("ADDED".to_owned(), "one".to_owned())
    );
    scene.map("two").await;
    assert_eq!(
        event(&mut socket).await,
        ("ADDED".to_owned(), "two".to_owned())
    );
    socket.close(None).await.expect("a close");
    let answer = tokio::time::timeout(LIMIT, socket.next())
        .await
        .expect("an answer in time");
    assert!(answer.expect("an answer").expect("a close").is_close());
}

#[tokio::test]
async fn watch_by_websocket_that_ends_is_closed_normally() {
    let scene = Scene::start().await;
    let bearer = format!("Bearer {}", scene.token);
    let headers = [
        ("origin", "https://localhost"),
        ("authorization", bearer.as_str()),
    ];
    let mut socket = scene
        .open("watch=true&timeoutSeconds=1", &headers)
        .await
        .expect("a socket");
    let end = tokio::time::timeout(LIMIT, socket.next())
        .await
        .expect("an end in time");
    let Some(Ok(Message::Close(Some(close)))) = end else {
        panic!("{end:?} is no close");
    };
    assert_eq!(u16::from(close.code), 1000);
}

#[tokio::test]
async fn websocket_without_an_origin_or_with_an_unknown_token_is_refused() {
    let scene = Scene::start().await;
    let refused =
        async |headers: &[(&'static str, &str)]| match scene.open("watch=true", headers).await {
            Err(tungstenite::Error::Http(answer)) => answer.status().as_u16(),
            other => panic!("not refused: {:?}", other.err()),
        };
    let bearer = format!("Bearer {}", scene.token);
    assert_eq!(refused(&[("authorization", &bearer)]).await, 403);
    let nonsense = URL_SAFE_NO_PAD.encode("nonsense");
    let protocols = format!("base64url.bearer.authorization.k8s.io.{nonsense}, v4.channel.k8s.io");
    let headers = [
        ("origin", "https://localhost"),
        ("sec-websocket-protocol", protocols.as_str()),
    ];
    assert_eq!(refused(&headers).await, 401);
}

#[tokio::test]
async fn token_among_the_subprotocols_is_as_good_as_one_in_a_header() {
    let scene = Scene::start().await;
    let token = URL_SAFE_NO_PAD.encode(&scene.token);
    let protocols = format!("base64url.bearer.authorization.k8s.io.{token}, events");
    let headers = [
        ("origin", "https://localhost"),
        ("sec-websocket-protocol", protocols.as_str()),
    ];
    let mut socket = scene.open("watch=true", &headers).await.expect("a socket");
    scene.map("one").await;
    assert_eq!(
        event(&mut socket).await,
        ("ADDED".to_owned(), "one".to_owned())
    );
}
