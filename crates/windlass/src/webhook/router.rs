//! [`Router`]: which part of the operator answers a POST.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, panic::catch_unwind, sync::Arc};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::warn;
use windlass_manifests::webhook::CONVERSION_PATH;

use super::{
    AnyVersions, AnyWebhook,
    any::{Answer, Panicked},
};
use crate::{Error, cache::Caches, metrics::WebhookMetrics, run::Metrics};

/// The largest review that is read.
pub(super) const BODY_LIMIT: usize = 7 * 1024 * 1024;

/// The operator's webhooks by path, and its conversions.
pub(crate) struct Router {
    answers: BTreeMap<String, Answer>,
    versions: Vec<AnyVersions>,
    metrics: WebhookMetrics,
}

impl Router {
    /// Binds webhooks to the caches they read from.
    pub(crate) fn new(
        webhooks: &[AnyWebhook],
        versions: &[AnyVersions],
        caches: &Arc<Caches>,
        metrics: &Metrics,
    ) -> Self {
        let answers = webhooks.iter().flat_map(|webhook| webhook.bind(caches));
        Self {
            answers: answers.collect(),
            versions: versions.to_vec(),
            metrics: metrics.webhooks().clone(),
        }
    }

    /// Answers a POST: an HTTP status and a body.
    pub(crate) async fn answer(&self, path_and_query: &str, body: &[u8]) -> (u16, Vec<u8>) {
        if body.len() > BODY_LIMIT {
            return (413, b"the review is larger than 7 MiB\n".to_vec());
        }
        let path = path_and_query.split('?').next().unwrap_or_default();
        if !self.serves(path) {
            return (404, format!("no webhook at {path}\n").into_bytes());
        }
        let (begun, in_flight) = (Instant::now(), self.metrics.begins(path));
        let (code, body) = self.review(path, body).await;
        in_flight.dec();
        self.metrics.answered(path, code, begun.elapsed());
        (code, body)
    }

    fn serves(&self, path: &str) -> bool {
        self.answers.contains_key(path) || path == CONVERSION_PATH && !self.versions.is_empty()
    }

    async fn review(&self, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let Ok(review) = serde_json::from_slice::<Value>(body) else {
            return (400, b"the body is not JSON\n".to_vec());
        };
        let request = &review["request"];
        if !request.is_object() {
            return (
                400,
                b"the body is not a review: it has no request\n".to_vec(),
            );
        }
        let mut response = match self.answers.get(path) {
            None => self.convert(request),
            Some(answer) => match answer(request.clone()).await {
                Ok(response) => response,
                Err(error) => {
                    if matches!(&error, Error::Other(source) if source.is::<Panicked>()) {
                        self.metrics.panics.inc();
                    }
                    warn!(path, %error, "a webhook failed");
                    return (500, format!("{error}\n").into_bytes());
                }
            },
        };
        response["uid"] = request["uid"].clone();
        let answer = json!({
            "kind": review["kind"],
            "apiVersion": review["apiVersion"],
            "response": response,
        });
        (200, answer.to_string().into_bytes())
    }

    fn convert(&self, request: &Value) -> Value {
        let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
        let objects = request["objects"].as_array().into_iter().flatten();
        let converted: Result<Vec<Value>, Error> = objects
            .map(|object| {
                let text = |field: &str| object[field].as_str().unwrap_or_default();
                let versions = self
                    .versions
                    .iter()
                    .find(|versions| versions.covers(text("apiVersion"), text("kind")));
                let Some(versions) = versions else {
                    let kind = text("kind");
                    return Err(Error::other(format!(
                        "cannot convert {kind}: it is unknown"
                    )));
                };
                // The author's code must not take the server down.
                let convert = AssertUnwindSafe(|| versions.convert(object.clone(), wanted));
                catch_unwind(convert).unwrap_or_else(|_| {
                    self.metrics.conversion_panics.inc();
                    Err(Error::other(format!(
                        "the conversion of a {} panicked",
                        text("kind")
                    )))
                })
            })
            .collect();
        match converted {
            Ok(converted) => {
                json!({"result": {"status": "Success"}, "convertedObjects": converted})
            }
            Err(error) => {
                json!({"result": {"status": "Failure", "message": error.to_string()}})
            }
        }
    }
}

pub(super) fn base64(text: &str) -> String {
    STANDARD.encode(text)
}
