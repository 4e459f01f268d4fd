//! A server on a port, and clients of it with all kinds of credentials.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;
use tower::Service as _;
use windlass_apiserver::http::{Serving, TlsConfig};
use windlass_apiserver::pki::{Authority, KeyedCertificate};
use windlass_apiserver::{ApiServer, Config, Identity, Random, SigningKey};

/// A server that serves, and what belongs to it.
pub(crate) struct Scene {
    pub(crate) server: ApiServer,
    pub(crate) key: SigningKey,
    /// A good token, of somebody who may do nothing.
    pub(crate) token: String,
    authority: Authority,
    serving: Serving,
}

/// Somebody with a connection.
#[derive(Clone)]
pub(crate) struct Caller {
    connection: Arc<Mutex<SendRequest<Full<Bytes>>>>,
    token: Option<String>,
}

/// A server whose uids are the same as those of any other made like this.
fn server(key: &SigningKey) -> ApiServer {
    ApiServer::new(Config {
        random: Random::seeded(1),
        service_account_key: Some(key.clone()),
        ..Config::default()
    })
}

/// A good token of an account that is made for it.
async fn token(server: &ApiServer) -> String {
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    post(server, accounts, &account).await;
    let made = post(server, &format!("{accounts}/robot/token"), &json!({})).await;
    let token = made["status"]["token"].as_str();
    token.expect("a token").to_owned()
}

async fn post(server: &ApiServer, path: &str, body: &Value) -> Value {
    let request = Request::post(path)
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let answer = server.in_process(Identity::admin()).call(request).await;
    let body = answer.expect("infallible").into_body().collect().await;
    serde_json::from_slice(&body.expect("whole").to_bytes()).expect("JSON")
}

impl Scene {
    pub(crate) async fn start() -> Self {
        let authority = Authority::create().expect("an authority");
        let key = SigningKey::generate().expect("a key");
        let server = server(&key);
        let tls = TlsConfig {
            serving: authority
                .server("kube-apiserver", &[[127, 0, 0, 1].into()], &["localhost"])
                .expect("a certificate"),
            client_ca: authority.pem().certificate.clone(),
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let serving = server.serve(listener, &tls).expect("it serves");
        let token = token(&server).await;
        Self {
            server,
            key,
            token,
            authority,
            serving,
        }
    }

    pub(crate) async fn stop(self) {
        self.serving.stop().await;
    }

    pub(crate) async fn token_of_another_cluster(&self) -> String {
        let key = SigningKey::generate().expect("a key");
        token(&server(&key)).await
    }

    pub(crate) async fn nobody(&self) -> Caller {
        self.caller(None).await
    }

    pub(crate) async fn with_token(&self, token: &str) -> Caller {
        self.nobody().await.with(token)
    }

    pub(crate) async fn admin(&self) -> Caller {
        let keyed = self.authority.client("admin", "system:masters");
        self.caller(Some(keyed.expect("a certificate"))).await
    }

    pub(crate) async fn with_foreign_certificate(&self) -> Caller {
        let other = Authority::create().expect("an authority");
        let keyed = other.client("admin", "system:masters");
        self.caller(Some(keyed.expect("a certificate"))).await
    }

    /// An administrator's certificate of this very authority, of last year.
    pub(crate) async fn with_expired_certificate(&self) -> Caller {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "admin");
        let name = &mut params.distinguished_name;
        name.push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let year = Duration::from_hours(365 * 24);
        params.not_before = (SystemTime::now() - 2 * year).into();
        params.not_after = (SystemTime::now() - year).into();
        let pem = self.authority.pem();
        let signer = KeyPair::from_pem(&pem.key).expect("a key");
        let issuer = Issuer::from_ca_cert_pem(&pem.certificate, signer).expect("an authority");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &issuer).expect("a certificate");
        let keyed = KeyedCertificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        };
        self.caller(Some(keyed)).await
    }

    async fn caller(&self, keyed: Option<KeyedCertificate>) -> Caller {
        let read = |pem: &str| -> Vec<CertificateDer<'static>> {
            let read = CertificateDer::pem_slice_iter(pem.as_bytes());
            read.map(|one| one.expect("PEM")).collect()
        };
        let mut roots = RootCertStore::empty();
        for certificate in read(&self.authority.pem().certificate) {
            roots.add(certificate).expect("an authority");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let config = match keyed {
            None => builder.with_no_client_auth(),
            Some(keyed) => {
                let key = PrivateKeyDer::from_pem_slice(keyed.key.as_bytes()).expect("PEM");
                let chain = read(&keyed.certificate);
                builder.with_client_auth_cert(chain, key).expect("a pair")
            }
        };
        let stream = TcpStream::connect(self.serving.address)
            .await
            .expect("it listens");
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await;
        let stream = TokioIo::new(stream.expect("a handshake"));
        let (connection, driver) = handshake(stream).await.expect("HTTP/1.1");
        tokio::spawn(driver);
        Caller {
            connection: Arc::new(Mutex::new(connection)),
            token: None,
        }
    }
}

impl Caller {
    /// The same client, with a token.
    pub(crate) fn with(&self, token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
            ..self.clone()
        }
    }

    pub(crate) async fn send(&self, method: &str, path: &str) -> (StatusCode, Bytes) {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = if method == "GET" { "" } else { "{}" };
        let request = request
            .body(Full::new(Bytes::from(body)))
            .expect("a request");
        let mut connection = self.connection.lock().await;
        connection.ready().await.expect("the connection is kept");
        let answer = connection.send_request(request).await.expect("an answer");
        let code = answer.status();
        let body = answer.into_body().collect().await.expect("whole");
        (code, body.to_bytes())
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        let (code, body) = self.send("GET", path).await;
        assert_eq!(code, 200, "{path}");
        serde_json::from_slice(&body).expect("JSON")
    }
}
