//! Traces of an operator against a fake API server.

// Shared with the test `operator`, which uses more of it.
#[allow(dead_code)]
#[path = "../operator/fake.rs"]
mod fake;

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use opentelemetry::{
    Value,
    trace::{SpanId, SpanKind, Status, TracerProvider as _},
};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use serde_json::json;
use tracing_subscriber::layer::SubscriberExt;
use windlass::{Controller, Operator, object};

use crate::fake::Fake;

const MAP: &str = "/api/v1/namespaces/n/configmaps/a";

/// Keeps what is exported.
#[derive(Clone, Debug, Default)]
struct Exported(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Exported {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

impl Exported {
    fn named(&self, name: &str) -> Vec<SpanData> {
        let spans = self.0.lock().unwrap();
        let named = spans.iter().filter(|span| span.name == name);
        named.cloned().collect()
    }
}

fn attribute(span: &SpanData, name: &str) -> String {
    let attributes = span.attributes.iter();
    let mut found = attributes.filter(|one| one.key.as_str() == name);
    found
        .next()
        .map(|one| match &one.value {
            Value::String(text) => text.to_string(),
            other => other.to_string(),
        })
        .unwrap_or_default()
}

/// A config map owns a secret of its name.
fn operator() -> Operator {
    Operator::new("copier").controller(Controller::of_existing::<ConfigMap>().dependent(
        |map: &ConfigMap| {
            object!(Secret {
                metadata: { name: map.metadata.name.clone().unwrap_or_default() },
                type_: "Opaque",
            })
        },
    ))
}

#[tokio::test(start_paused = true)]
async fn reconcile_has_a_span_with_its_requests_and_a_link_to_the_reconcile_that_wrote() {
    let exported = Exported::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exported.clone())
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let _subscriber = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    let fake = Fake::default();
    fake.put(MAP, &json!({}));
    let running = fake.start(&operator()).await;
    // Another's change: nobody wrote what it triggers.
    fake.put(MAP, &json!({"data": {"key": "value"}}));
    fake.settle().await;
    running.stop().await;

    let reconciles = exported.named("reconcile");
    assert_eq!(
        reconciles.len(),
        3,
        "the first list, the write of the secret, the change of the map: {reconciles:#?}"
    );
    let id = |span: &SpanData| span.span_context.span_id();
    let links = |span: &SpanData| -> Vec<SpanId> {
        let links = span.links.iter();
        links.map(|link| link.span_context.span_id()).collect()
    };
    let [first, second, third] = &reconciles[..] else {
        unreachable!()
    };
    assert_eq!(links(first), []);
    assert_eq!(links(second), [id(first)]);
    assert_eq!(links(third), []);
    for span in &reconciles {
        assert_eq!(span.parent_span_id, SpanId::INVALID);
        assert_eq!(attribute(span, "controller"), "configmap");
        assert_eq!(attribute(span, "object"), "n/a");
        assert_eq!(attribute(span, "reconcileID").len(), 16);
    }

    let requests = exported.named("request");
    let writes = requests
        .iter()
        .filter(|span| !matches!(&*attribute(span, "verb"), "list" | "watch"));
    let writes: Vec<&SpanData> = writes
        .filter(|span| attribute(span, "resource") == "secrets")
        .collect();
    assert!(!writes.is_empty());
    for write in writes {
        assert_eq!(write.parent_span_id, id(first));
        assert_eq!(write.span_kind, SpanKind::Client);
        let code: u16 = attribute(write, "http.response.status_code")
            .parse()
            .unwrap();
        assert_eq!(write.status == Status::error(""), code >= 400);
    }
    let outside = requests
        .iter()
        .filter(|span| matches!(&*attribute(span, "verb"), "list" | "watch"));
    assert!(outside.count() >= 2, "the lists and watches of the caches");
}
