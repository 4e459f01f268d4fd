//! An API server that knows one pod: as much of one as a worker needs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Pod;
use kube::client::Body;
use serde_json::{Value, json};

#[derive(Clone)]
pub(super) struct Server(Arc<Mutex<State>>);

struct State {
    pod: Value,
    version: u64,
    failures: u32,
    writes: Vec<String>,
    /// The reasons for which the first container was seen waiting.
    reasons: Vec<String>,
    requests: Vec<String>,
}

impl Server {
    pub(super) fn new(pod: Value) -> Self {
        Self(Arc::new(Mutex::new(State {
            pod,
            version: 1,
            failures: 0,
            writes: Vec::new(),
            reasons: Vec::new(),
            requests: Vec::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test has failed while holding it")
    }

    pub(super) fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect().await.expect("a body").to_bytes();
                let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                let (status, answer) = server.lock().answer(&parts.method, parts.uri.path(), &body);
                let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
                *response.status_mut() = status;
                Ok::<_, tower::BoxError>(response)
            }
        });
        kube::Client::new(service, "default")
    }

    pub(super) fn pod(&self) -> Pod {
        serde_json::from_value(self.lock().pod.clone()).expect("a pod")
    }

    /// What was written, in short.
    pub(super) fn writes(&self) -> Vec<String> {
        self.lock().writes.clone()
    }

    pub(super) fn reasons(&self) -> Vec<String> {
        self.lock().reasons.clone()
    }

    /// Every request in full.
    pub(super) fn requests(&self) -> Vec<String> {
        self.lock().requests.clone()
    }

    pub(super) fn fail_next(&self, count: u32) {
        self.lock().failures = count;
    }

    /// Somebody deletes the pod.
    pub(super) fn mark_deleted(&self, grace: u32) {
        let mut state = self.lock();
        state.pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
        state.pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
        state.bump();
    }
}

impl State {
    fn bump(&mut self) {
        self.version += 1;
        self.pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
    }

    fn answer(&mut self, method: &Method, path: &str, body: &Value) -> (StatusCode, Value) {
        self.requests.push(format!("{method} {path} {body}"));
        if method == Method::POST {
            assert!(path.ends_with("/namespaces/shop/events"), "{path}");
            return (StatusCode::CREATED, body.clone());
        }
        if self.failures > 0 {
            self.failures -= 1;
            let status = json!({"kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError", "message": "not today"});
            return (StatusCode::INTERNAL_SERVER_ERROR, status);
        }
        let pod = "/api/v1/namespaces/shop/pods/web";
        match (method, path.strip_prefix(pod)) {
            (&Method::PATCH, Some("/status")) => {
                assert_eq!(body["metadata"]["uid"], "u1");
                self.apply(&body["status"]);
                self.writes.push(format!(
                    "status {}",
                    body["status"]["phase"].as_str().unwrap_or("")
                ));
            }
            (&Method::DELETE, Some("")) => self.writes.push(format!(
                "delete with grace {} of {}",
                body["gracePeriodSeconds"],
                body["preconditions"]["uid"].as_str().unwrap_or("")
            )),
            other => panic!("an unexpected request: {other:?} {path}"),
        }
        (StatusCode::OK, self.pod.clone())
    }

    /// Applies a status: conditions by their type, everything else as a whole.
    fn apply(&mut self, status: &Value) {
        let waiting = &status["containerStatuses"][0]["state"]["waiting"]["reason"];
        self.reasons.extend(waiting.as_str().map(str::to_owned));
        let before = self.pod["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let given = status["conditions"].as_array().cloned().unwrap_or_default();
        let conditions: BTreeMap<String, Value> = before
            .into_iter()
            .chain(given)
            .map(|condition| (condition["type"].to_string(), condition))
            .collect();
        self.pod["status"] = status.clone();
        self.pod["status"]["conditions"] = conditions.into_values().collect();
        self.pod["status"]["qosClass"] = json!("BestEffort");
        self.bump();
    }
}
