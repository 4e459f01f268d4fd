//! Webhooks in process: for tests, where time is virtual and a socket would never answer.
//!
//! What TLS would check is checked all the same, at the virtual time: that the certificate the
//! service shows is for the name it was called by, is not over, and is vouched for by the bundle.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::tls::{dial_error, tls_error};
use super::transport::{Reply, TransportError, WebhookCall, WebhookTransport};
use super::trust::Bundle;
use crate::clock::Clock;

/// A webhook server in this process.
pub trait LocalService: Send + Sync {
    /// The certificate chain it would show now, its own certificate first. `None` is believed
    /// without one: for tests that are not about certificates.
    fn certificates(&self) -> Option<Vec<CertificateDer<'static>>>;

    /// Answers one POST.
    fn post(
        &self,
        path_and_query: String,
        body: Bytes,
    ) -> Pin<Box<dyn Future<Output = Reply> + Send>>;
}

type Services = BTreeMap<(String, u16), Vec<(u64, Arc<dyn LocalService>)>>;

/// The webhook servers of this process, by host and port. Clones share everything.
#[derive(Clone)]
pub struct LocalWebhooks {
    clock: Clock,
    /// Who is asked about what is not in this process.
    others: Option<Arc<dyn WebhookTransport>>,
    inner: Arc<Mutex<(u64, Services)>>,
}

impl std::fmt::Debug for LocalWebhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LocalWebhooks")
    }
}

/// A service that can be called until this is dropped.
#[must_use = "dropping it takes the service away"]
pub struct LocalRegistration {
    webhooks: LocalWebhooks,
    number: u64,
}

impl LocalWebhooks {
    /// None yet; certificates are judged by `clock`.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            others: None,
            inner: Arc::default(),
        }
    }

    /// What is not in this process is reached in another way.
    #[must_use]
    pub fn or_else(mut self, others: Arc<dyn WebhookTransport>) -> Self {
        self.others = Some(others);
        self
    }

    /// Serves `host:port`; a Service is called `<name>.<namespace>.svc`. Of several services of
    /// one address the oldest is called.
    pub fn serve(
        &self,
        host: impl Into<String>,
        port: u16,
        service: Arc<dyn LocalService>,
    ) -> LocalRegistration {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, services) = &mut *inner;
        *count += 1;
        let number = *count;
        let same = services.entry((host.into(), port)).or_default();
        same.push((number, service));
        LocalRegistration {
            webhooks: self.clone(),
            number,
        }
    }

    fn find(&self, host: &str, port: u16) -> Option<Arc<dyn LocalService>> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let services = inner.1.get(&(host.to_owned(), port))?;
        services.first().map(|(_, service)| Arc::clone(service))
    }

    fn check(&self, service: &dyn LocalService, call: &WebhookCall) -> Result<(), TransportError> {
        let Some(chain) = service.certificates() else {
            return Ok(());
        };
        let Some((own, others)) = chain.split_first() else {
            return Err(TransportError(
                "remote error: tls: internal error".to_owned(),
            ));
        };
        let bundle = Bundle::from_pem(&call.ca_bundle)?;
        let name = ServerName::try_from(call.server_name.as_str())
            .map_err(|error| TransportError(format!("{}: {error}", call.server_name)))?;
        let seconds = self.clock.now().as_second().max(0).unsigned_abs();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        bundle
            .verify_server_cert(own, others, &name, &[], now)
            .map(|_| ())
            .map_err(|error| TransportError(tls_error(&error, &call.server_name)))
    }
}

impl WebhookTransport for LocalWebhooks {
    fn post<'a>(
        &'a self,
        call: &'a WebhookCall,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, TransportError>> + Send + 'a>> {
        Box::pin(async move {
            let (host, port) = &call.address;
            let Some(service) = self.find(host, *port) else {
                if let Some(others) = &self.others {
                    return others.post(call).await;
                }
                let refused = std::io::ErrorKind::ConnectionRefused.into();
                return Err(TransportError(dial_error(host, *port, &refused)));
            };
            self.check(service.as_ref(), call)?;
            let reply = service.post(call.path_and_query.clone(), call.body.clone());
            Ok(reply.await)
        })
    }

    fn knows_service(&self, namespace: &str, name: &str) -> bool {
        let host = format!("{name}.{namespace}.svc");
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner
            .1
            .iter()
            .any(|((known, _), services)| *known == host && !services.is_empty())
    }
}

impl Drop for LocalRegistration {
    fn drop(&mut self) {
        let inner = &self.webhooks.inner;
        let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
        for services in inner.1.values_mut() {
            services.retain(|(number, _)| *number != self.number);
        }
    }
}
