//! The webhook that cases script: it answers by rules stated in the case, and keeps what it was sent.
//!
//! The real server calls it over TLS on loopback, with a CA made for the run; ours in process.
//! `{hooks}` in a case is its base URL and `{ca}` its CA; in the answers both are placeholders.
//! A step whose method is `HOOKS` answers what was received since the last such step.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use windlass_apiserver::pki::Authority;
use windlass_apiserver::webhook::{LocalService, Reply};

/// What to answer at one path.
#[derive(Debug, Default, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Script {
    /// The response, its uid filled in; an admission review is allowed unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<Value>,
    /// A JSON patch to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    patch: Option<Value>,
    /// For conversions: a JSON patch for each object, by the version wanted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    convert: BTreeMap<String, Value>,
    /// Fields of the review itself, to be wrong about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    review: Option<Value>,
    /// The whole body as it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<String>,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_seconds: Option<u64>,
}

/// The webhook server of a case.
pub(crate) struct Scripted {
    scripts: BTreeMap<String, Script>,
    received: Mutex<Vec<Value>>,
}

impl Scripted {
    pub(crate) fn new(scripts: BTreeMap<String, Script>) -> Arc<Self> {
        Arc::new(Self {
            scripts,
            received: Mutex::default(),
        })
    }

    /// Whether the case has a webhook.
    pub(crate) fn are_any(&self) -> bool {
        !self.scripts.is_empty()
    }

    /// What came since the last call. A conversion that was asked for again at once is told once:
    /// the real server's caches ask for the same as its clients.
    pub(crate) fn take_received(&self) -> Vec<Value> {
        let mut received = std::mem::take(&mut *self.received.lock().expect("nobody panicked"));
        received.dedup_by_key(|one| {
            let objects = &one["review"]["request"]["objects"];
            match objects {
                Value::Null => one["review"]["request"]["uid"].clone(),
                objects => objects.clone(),
            }
        });
        received
    }

    async fn answer(&self, path_and_query: &str, body: &[u8]) -> (StatusCode, Bytes) {
        let review: Value = serde_json::from_slice(body).unwrap_or_default();
        self.received
            .lock()
            .expect("nobody panicked")
            .push(json!({"path": path_and_query, "review": review}));
        let path = path_and_query.split('?').next().unwrap_or_default();
        let Some(script) = self.scripts.get(path) else {
            return (StatusCode::NOT_FOUND, Bytes::from("404 page not found\n"));
        };
        if let Some(seconds) = script.delay_seconds {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
        }
        let code = script.code.map_or(StatusCode::OK, |code| {
            StatusCode::from_u16(code).expect("a status")
        });
        let body = match &script.raw {
            Some(raw) => raw.clone(),
            None => script.respond(&review).to_string(),
        };
        (code, body.into())
    }
}

impl Script {
    fn respond(&self, review: &Value) -> Value {
        let request = &review["request"];
        let mut response = if review["kind"] == "ConversionReview" {
            json!({"result": {"status": "Success"}, "convertedObjects": self.converted(request)})
        } else {
            json!({"allowed": true})
        };
        response["uid"] = request["uid"].clone();
        if let Some(patch) = &self.patch {
            response["patchType"] = "JSONPatch".into();
            response["patch"] = STANDARD.encode(patch.to_string()).into();
        }
        overlay(&mut response, self.response.as_ref());
        let mut answer = json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response});
        overlay(&mut answer, self.review.as_ref());
        answer
    }

    fn converted(&self, request: &Value) -> Vec<Value> {
        let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
        let patch = self.convert.get(wanted).cloned().unwrap_or(json!([]));
        let patch: json_patch::Patch = serde_json::from_value(patch).expect("a JSON patch");
        // What cannot be done is left out: servers convert parts of objects, too.
        let objects = request["objects"].as_array().into_iter().flatten();
        objects
            .map(|object| {
                let mut object = object.clone();
                object["apiVersion"] = wanted.into();
                for operation in &patch.0 {
                    let _ = json_patch::patch(&mut object, std::slice::from_ref(operation));
                }
                object
            })
            .collect()
    }
}

/// Replaces the fields that `over` has; a null takes one away.
fn overlay(value: &mut Value, over: Option<&Value>) {
    for (key, over) in over.and_then(Value::as_object).into_iter().flatten() {
        match (over, value.as_object_mut()) {
            (Value::Null, Some(map)) => {
                map.remove(key);
            }
            _ => value[key] = over.clone(),
        }
    }
}

impl LocalService for Scripted {
    fn certificates(&self) -> Option<Vec<CertificateDer<'static>>> {
        None
    }

    fn post(
        &self,
        path_and_query: String,
        body: Bytes,
    ) -> Pin<Box<dyn Future<Output = Reply> + Send>> {
        let this = Self {
            scripts: self.scripts.clone(),
            received: Mutex::default(),
        };
        // Kept before it is answered, as over a connection.
        self.received
            .lock()
            .expect("nobody panicked")
            .push(json!({"path": path_and_query, "review": serde_json::from_slice::<Value>(&body).unwrap_or_default()}));
        Box::pin(async move {
            let (code, body) = this.answer(&path_and_query, &body).await;
            Reply {
                code,
                content_type: "application/json".into(),
                body,
            }
        })
    }
}

/// Serves over TLS on loopback until the runtime ends; the base URL and the CA come back.
pub(crate) async fn serve(scripted: Arc<Scripted>) -> (String, String) {
    let authority = Authority::create().expect("a CA");
    let loopback = std::net::Ipv4Addr::LOCALHOST;
    let serving = authority
        .server(
            "hooks",
            &[loopback.into()],
            &["localhost", "hook.webhook-service.svc"],
        )
        .expect("a certificate");
    let chain = CertificateDer::pem_slice_iter(serving.certificate.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("a chain");
    let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("TLS versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a TLS configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((loopback, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, scripted) = (acceptor.clone(), Arc::clone(&scripted));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let service = service_fn(move |request: Request<Incoming>| {
                    let scripted = Arc::clone(&scripted);
                    async move {
                        let path = request.uri().to_string();
                        let body = request.into_body().collect().await;
                        let body = body
                            .map(http_body_util::Collected::to_bytes)
                            .unwrap_or_default();
                        let (code, body) = scripted.answer(&path, &body).await;
                        let mut response = Response::new(Full::new(body));
                        *response.status_mut() = code;
                        response.headers_mut().insert(
                            "content-type",
                            http::HeaderValue::from_static("application/json"),
                        );
                        Ok::<_, Infallible>(response)
                    }
                });
                let connection = hyper::server::conn::http1::Builder::new();
                let _ = connection
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    let ca = STANDARD.encode(&authority.pem().certificate);
    (format!("https://{address}"), ca)
}
