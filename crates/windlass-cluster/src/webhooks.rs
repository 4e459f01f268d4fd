//! Operators' webhooks, called in process: no port, no name to resolve, and in virtual time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use rustls::pki_types::CertificateDer;
use windlass::{HostWebhooks, WebhookServer, WebhookServing};
use windlass_apiserver::webhook::{LocalService, LocalWebhooks, Reply};

/// The port of the Service in front of an operator.
const PORT: u16 = 443;

/// How an operator whose manifests put it into `namespace` serves its webhooks to this cluster.
pub(crate) fn serving(webhooks: &LocalWebhooks, namespace: &str) -> WebhookServing {
    WebhookServing::InProcess {
        host: Arc::new(Host(webhooks.clone())),
        namespace: namespace.to_owned(),
    }
}

#[derive(Debug)]
struct Host(LocalWebhooks);

impl HostWebhooks for Host {
    fn host(&self, namespace: &str, service: &str, server: WebhookServer) -> Box<dyn Send + Sync> {
        let host = format!("{service}.{namespace}.svc");
        Box::new(self.0.serve(host, PORT, Arc::new(Hosted(server))))
    }
}

struct Hosted(WebhookServer);

impl LocalService for Hosted {
    fn certificates(&self) -> Option<Vec<CertificateDer<'static>>> {
        let chain = self.0.certificates();
        Some(chain.into_iter().map(CertificateDer::from).collect())
    }

    fn post(
        &self,
        path_and_query: String,
        body: Bytes,
    ) -> Pin<Box<dyn Future<Output = Reply> + Send>> {
        let server = self.0.clone();
        Box::pin(async move {
            let (code, body) = server.answer(&path_and_query, &body).await;
            Reply {
                code: StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                content_type: if code == 200 {
                    "application/json".into()
                } else {
                    "text/plain".into()
                },
                body: body.into(),
            }
        })
    }
}
