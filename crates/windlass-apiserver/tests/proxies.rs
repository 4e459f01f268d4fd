//! Requests that are passed on to pods: what arrives there, and what comes back.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::{WebSocketStream, client_async};
use tower::Service as _;
use windlass_apiserver::http::TlsConfig;
use windlass_apiserver::pki::Authority;
use windlass_apiserver::{ApiServer, Config, Identity};

const LIMIT: Duration = Duration::from_mins(1);
const PODS: &str = "/api/v1/namespaces/default/pods";
/// Where a pod that is a plain process has its address.
const POD: Ipv4Addr = Ipv4Addr::new(127, 64, 77, 7);

/// A server with a pod `web`, and what runs in it.
struct Scene {
    server: ApiServer,
    port: u16,
    secure: u16,
}

impl Scene {
    async fn start() -> Self {
        let server = ApiServer::new(Config::default());
        let scene = Self {
            port: listen(None).await,
            secure: listen(Some(acceptor())).await,
            server,
        };
        let at = json!({"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]});
        let node =
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "here"}, "status": at});
        scene.admin("POST", "/api/v1/nodes", node).await;
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        scene
            .admin(
                "POST",
                "/api/v1/namespaces/default/serviceaccounts",
                account,
            )
            .await;
        let ports = json!([{"containerPort": scene.port}]);
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web"},
            "spec": {"nodeName": "here", "containers": [{"name": "c", "image": "i", "ports": ports}]},
        });
        scene.admin("POST", PODS, pod).await;
        let status = json!({"status": {"podIP": POD, "podIPs": [{"ip": POD}]}});
        scene
            .admin("PATCH", &format!("{PODS}/web/status"), status)
            .await;
        scene
    }

    async fn admin(&self, method: &str, path: &str, body: Value) -> Value {
        let (code, _, said) = self.ask(method, path, &[], &body.to_string()).await;
        assert!(code.is_success(), "{method} {path}: {said}");
        serde_json::from_str(&said).expect("JSON")
    }

    async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (StatusCode, HeaderMap, String) {
        let mut request = Request::builder().method(method).uri(path);
        if method == "PATCH" {
            request = request.header("content-type", "application/merge-patch+json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned())));
        let mut service = self.server.in_process(Identity::admin());
        let answer = tokio::time::timeout(LIMIT, service.call(request.expect("a request"))).await;
        let (parts, body) = answer.expect("in time").expect("an answer").into_parts();
        let body = tokio::time::timeout(LIMIT, body.collect()).await;
        let body = body.expect("in time").expect("a body").to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        (parts.status, parts.headers, body)
    }
}

/// What runs in the pod, on a port of its own.
async fn listen(tls: Option<TlsAcceptor>) -> u16 {
    let listener = TcpListener::bind((POD, 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let tls = tls.clone();
            tokio::spawn(async move {
                let http = hyper::server::conn::http1::Builder::new();
                let service = service_fn(answer);
                let ended = match tls {
                    None => {
                        let io = TokioIo::new(stream);
                        http.serve_connection(io, service).with_upgrades().await
                    }
                    Some(tls) => {
                        let io = TokioIo::new(tls.accept(stream).await.expect("a handshake"));
                        http.serve_connection(io, service).with_upgrades().await
                    }
                };
                drop(ended);
            });
        }
    });
    port
}

/// A certificate that no client trusts.
fn acceptor() -> TlsAcceptor {
    let authority = Authority::create().expect("an authority");
    let keyed = authority
        .server("pod", &[], &["pod.example.com"])
        .expect("a certificate");
    let chain = CertificateDer::pem_slice_iter(keyed.certificate.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("a chain");
    let key = PrivateKeyDer::from_pem_slice(keyed.key.as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a certificate");
    TlsAcceptor::from(Arc::new(config))
}

/// Answers by path; `/echo…` says what arrived.
async fn answer(mut request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let answer = Response::builder();
    let path = request.uri().path().to_owned();
    let built = match path.as_str() {
        "/redirect" => answer
            .status(302)
            .header("location", "/login")
            .body(Full::default()),
        "/page" => answer
            .header("content-type", "text/html; charset=utf-8")
            .header("access-control-allow-origin", "*")
            .body(Full::from("<a href=\"/next\">next</a>")),
        "/teapot" => answer.status(418).body(Full::from("short and stout")),
        "/socket" => {
            let key = request.headers()["sec-websocket-key"].as_bytes();
            let accept = derive_accept_key(key);
            // What is upgraded is asked for without its query, as the real server does.
            assert_eq!(request.uri(), "/socket");
            let upgraded = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let io = TokioIo::new(upgraded.await.expect("a connection"));
                let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
                while let Some(Ok(Message::Text(said))) = socket.next().await {
                    let back = Message::text(format!("{said}, too"));
                    socket.send(back).await.expect("it is heard");
                }
            });
            answer
                .status(101)
                .header("connection", "Upgrade")
                .header("upgrade", "websocket")
                .header("sec-websocket-accept", accept)
                .body(Full::default())
        }
        _ => {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            let headers: Vec<(&str, &str)> = parts
                .headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()))
                .collect();
            let said = json!({
                "method": parts.method.as_str(),
                "uri": parts.uri.to_string(),
                "headers": headers,
                "body": String::from_utf8_lossy(&body),
            });
            answer.body(Full::from(said.to_string()))
        }
    };
    Ok(built.expect("an answer"))
}

fn header<'a>(said: &'a Value, name: &str) -> Option<&'a str> {
    let headers = said["headers"].as_array().expect("headers");
    let found = headers.iter().find(|header| header[0] == name)?;
    found[1].as_str()
}

#[tokio::test]
async fn method_path_query_and_body_are_passed_on() {
    let scene = Scene::start().await;
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let path = format!("{PODS}/web/proxy/echo/a%20b/?x=1&y=%2F");
        let sent = [
            ("host", "127.0.0.1:6443"),
            ("x-mine", "1"),
            ("authorization", "Basic c2VjcmV0"),
            ("impersonate-user", "admin"),
            ("impersonate-group", "system:masters"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
        ];
        let body = if method == "GET" { "" } else { "hello" };
        let (code, _, said) = scene.ask(method, &path, &sent, body).await;
        assert_eq!(code, 200, "{said}");
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said["method"], method);
        assert_eq!(said["uri"], "/echo/a%20b/?x=1&y=%2F");
        assert_eq!(said["body"], body);
        assert_eq!(header(&said, "x-mine"), Some("1"));
        assert_eq!(header(&said, "host"), Some("127.0.0.1:6443"));
        let whole = format!("{PODS}/web/proxy/echo/a%20b/");
        assert_eq!(header(&said, "x-forwarded-uri"), Some(whole.as_str()));
        for kept in [
            "authorization",
            "impersonate-user",
            "impersonate-group",
            "x-hop",
        ] {
            assert_eq!(header(&said, kept), None, "{said}");
        }
    }
    let (code, headers, said) = scene
        .ask("HEAD", &format!("{PODS}/web/proxy/teapot"), &[], "")
        .await;
    assert_eq!((code.as_u16(), said.as_str()), (418, ""));
    assert_eq!(headers["content-length"], "15");
}

#[tokio::test]
async fn port_and_scheme_of_the_name_count() {
    let scene = Scene::start().await;
    for (id, code) in [
        (format!("web:{}", scene.port), 418),
        (format!("http:web:{}", scene.port), 418),
        (format!("https:web:{}", scene.secure), 418),
        (format!("https:web:{}", scene.port), 503),
    ] {
        let path = format!("{PODS}/{id}/proxy/teapot");
        let (found, _, said) = scene.ask("GET", &path, &[], "").await;
        assert_eq!(found.as_u16(), code, "{id}: {said}");
    }
}

#[tokio::test]
async fn links_of_answers_lead_through_the_proxy() {
    let scene = Scene::start().await;
    let (code, headers, _) = scene
        .ask("GET", &format!("{PODS}/web/proxy/redirect"), &[], "")
        .await;
    assert_eq!(code, 302);
    assert_eq!(headers["location"], format!("{PODS}/web/proxy/login"));
    let (_, headers, page) = scene
        .ask("GET", &format!("{PODS}/web/proxy/page"), &[], "")
        .await;
    assert_eq!(page, format!("<a href=\"{PODS}/web/proxy/next\">next</a>"));
    assert_eq!(headers["content-length"], page.len().to_string());
    assert!(!headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn port_without_a_listener_is_unavailable() {
    let scene = Scene::start().await;
    let (code, _, said) = scene
        .ask("GET", &format!("{PODS}/web:1/proxy/"), &[], "")
        .await;
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(
        (code.as_u16(), &said["reason"]),
        (503, &json!("ServiceUnavailable"))
    );
    let expected =
        format!("error trying to reach service: dial tcp {POD}:1: connect: connection refused");
    assert_eq!(said["message"], expected);
}

#[tokio::test]
async fn address_of_a_process_on_another_node_is_not_allowed() {
    let scene = Scene::start().await;
    let away = json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}});
    scene
        .admin("PATCH", "/api/v1/nodes/here/status", away)
        .await;
    let (code, _, said) = scene
        .ask("GET", &format!("{PODS}/web/proxy/"), &[], "")
        .await;
    assert_eq!(code, 400);
    assert!(said.contains("address not allowed"), "{said}");
}

#[tokio::test]
async fn service_leads_to_its_endpoint() {
    let scene = Scene::start().await;
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    });
    scene
        .admin("POST", "/api/v1/namespaces/default/services", service)
        .await;
    let pod = json!({"kind": "Pod", "namespace": "default", "name": "web"});
    let endpoints = json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "web"},
        "subsets": [{
            "addresses": [{"ip": POD, "targetRef": pod}],
            "ports": [{"name": "http", "port": scene.port}],
        }],
    });
    let created = scene
        .ask(
            "POST",
            "/api/v1/namespaces/default/endpoints",
            &[],
            &endpoints.to_string(),
        )
        .await;
    assert_eq!(created.0, 201, "{}", created.2);
    for id in ["web:80", "web:http", "http:web:80"] {
        let path = format!("/api/v1/namespaces/default/services/{id}/proxy/teapot");
        let (code, _, said) = scene.ask("GET", &path, &[], "").await;
        assert_eq!(
            (code.as_u16(), said.as_str()),
            (418, "short and stout"),
            "{id}"
        );
    }
}

#[tokio::test]
async fn socket_is_passed_on_in_both_directions() {
    let scene = Scene::start().await;
    let authority = Authority::create().expect("an authority");
    let ca = authority.pem().certificate.clone();
    let tls = TlsConfig {
        serving: authority
            .server("kube-apiserver", &[[127, 0, 0, 1].into()], &["localhost"])
            .expect("a certificate"),
        client_ca: ca.clone(),
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let serving = scene.server.serve(listener, &tls).expect("it serves");
    let address: SocketAddr = serving.address;
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(ca.as_bytes()).expect("PEM");
    roots.add(ca).expect("an authority");
    let admin = authority
        .client("admin", "system:masters")
        .expect("a certificate");
    let chain = CertificateDer::from_pem_slice(admin.certificate.as_bytes()).expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(admin.key.as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![chain], key)
        .expect("a client");
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TcpStream::connect(address).await.expect("a connection");
    let stream = connector.connect(name, stream).await.expect("a handshake");
    let url = format!("wss://{address}{PODS}/web/proxy/socket?lost=1");
    let request = url.into_client_request().expect("a request");
    let opened = tokio::time::timeout(LIMIT, client_async(request, stream)).await;
    let (mut socket, _) = opened.expect("in time").expect("a WebSocket");
    for said in ["one", "two"] {
        socket.send(Message::text(said)).await.expect("it is sent");
        let heard = tokio::time::timeout(LIMIT, socket.next())
            .await
            .expect("in time");
        let heard = heard.expect("a message").expect("a message");
        assert_eq!(heard.to_text().expect("text"), format!("{said}, too"));
    }
    socket.close(None).await.expect("it closes");
    serving.stop().await;
}
