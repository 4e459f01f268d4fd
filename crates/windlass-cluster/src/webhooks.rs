//! Operators' webhooks, called in process: no port, no name to resolve, and in virtual time.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use rustls::pki_types::CertificateDer;
use windlass::manifests::Description;
use windlass::testing::{HostWebhooks, WebhookServer, WebhookServing};
use windlass_apiserver::webhook::{LocalService, LocalWebhooks, Reply};

/// The port of the Service in front of an operator.
const PORT: u16 = 443;

/// How long an operator may take until its webhooks answer.
const LIMIT: Duration = Duration::from_secs(30);

/// The server of an operator, once it has one. Weak: whoever looks at it must not keep an operator
/// alive that was stopped or killed.
pub(crate) type Served = Arc<OnceLock<Weak<Hosted>>>;

/// How an operator whose manifests put it into `namespace` serves its webhooks to this cluster.
pub(crate) fn serving(webhooks: &LocalWebhooks, namespace: &str) -> (WebhookServing, Served) {
    let served = Served::default();
    let host = Host {
        webhooks: webhooks.clone(),
        served: served.clone(),
    };
    let serving = WebhookServing::InProcess {
        host: Arc::new(host),
        namespace: namespace.to_owned(),
    };
    (serving, served)
}

/// Waits until the webhooks of an operator can be called: it shows a certificate, and everybody who
/// calls knows whom to trust. False when that takes too long.
pub(crate) async fn answer(
    client: &Client,
    description: &Description,
    served: &Served,
) -> kube::Result<bool> {
    if !description.has_webhooks() {
        return Ok(true);
    }
    let ready = async {
        loop {
            let shows = served
                .get()
                .and_then(Weak::upgrade)
                .is_some_and(|hosted| !hosted.0.certificates().is_empty());
            if shows && is_trusted(client, description).await? {
                return Ok(());
            }
            // It is the operator that knows, and all that can be seen is what it has written.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    match tokio::time::timeout(LIMIT, ready).await {
        Ok(ready) => ready.map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Whether everything that calls the operator has a `caBundle`.
async fn is_trusted(client: &Client, description: &Description) -> kube::Result<bool> {
    let mut bundles = Vec::new();
    let (mutating, validating): (Vec<_>, Vec<_>) =
        description.webhooks.iter().partition(|hook| hook.mutating);
    if !mutating.is_empty() {
        let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
        let found = api.get(&description.name).await?.webhooks;
        let found = found.unwrap_or_default().into_iter();
        bundles.extend(found.map(|hook| hook.client_config.ca_bundle));
    }
    if !validating.is_empty() {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        let found = api.get(&description.name).await?.webhooks;
        let found = found.unwrap_or_default().into_iter();
        bundles.extend(found.map(|hook| hook.client_config.ca_bundle));
    }
    for name in &description.conversions {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let conversion = api.get(name).await?.spec.conversion;
        let config = conversion.and_then(|conversion| conversion.webhook?.client_config);
        bundles.push(config.and_then(|config| config.ca_bundle));
    }
    let filled =
        |bundle: Option<k8s_openapi::ByteString>| bundle.is_some_and(|text| !text.0.is_empty());
    Ok(bundles.into_iter().all(filled))
}

#[derive(Debug)]
struct Host {
    webhooks: LocalWebhooks,
    served: Served,
}

impl HostWebhooks for Host {
    fn host(&self, namespace: &str, service: &str, server: WebhookServer) -> Box<dyn Send + Sync> {
        let host = format!("{service}.{namespace}.svc");
        let hosted = Arc::new(Hosted(server));
        let _ = self.served.set(Arc::downgrade(&hosted));
        Box::new(self.webhooks.serve(host, PORT, hosted))
    }
}

/// An operator, as the API server calls it.
#[derive(Debug)]
pub(crate) struct Hosted(WebhookServer);

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
