//! A resource behind an HTTP API: a Record is an entry of a name service.
//!
//! What sends a request to the API is a trait, so that tests simulate the service; the operator is
//! given what implements it. Every step can be repeated: the next reconcile may follow a crash
//! after any of them.

use std::{future::Future, sync::Arc, time::Duration};

use http::{Method, Request, StatusCode};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{FinalizingReconciler, prelude::*};

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Record",
    namespaced,
    status = "RecordStatus"
)]
pub struct RecordSpec {
    /// The host name; it is what the record is found by, so it stays.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "host is immutable"}]))]
    pub host: String,
    /// The address it resolves to.
    pub address: String,
}

/// What there is at the provider.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecordStatus {
    /// The address it resolves to.
    pub address: String,
    /// Kept by the framework.
    pub conditions: Vec<Condition>,
}

/// The provider's API: `PUT` and `DELETE` of `/records/HOST`.
pub trait Provider: Send + Sync + 'static {
    /// Sends a request, and returns the status of the answer.
    fn send(&self, request: Request<String>) -> impl Future<Output = Result<StatusCode>> + Send;
}

impl Provider for Client<HttpConnector, String> {
    async fn send(&self, request: Request<String>) -> Result<StatusCode> {
        Ok(self.request(request).await?.status())
    }
}

/// The operator, for the API at this address.
pub fn operator(api: String, provider: Arc<impl Provider>) -> Operator {
    let records = move |_: &mut Declare<Record>| Records(api.clone(), Arc::clone(&provider));
    Operator::new("external-api")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(Controller::of::<Record>().reconciler(records))
}

struct Records<P>(String, Arc<P>);

impl<P: Provider> Records<P> {
    async fn send(&self, method: Method, host: &str, address: String) -> Result<()> {
        let request = Request::builder().uri(format!("{}/records/{host}", self.0));
        let request = request.method(method.clone()).body(address)?;
        let failed = |status| format!("cannot {method} {host}: {status}");
        match self.1.send(request).await? {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND if method == Method::DELETE => Ok(()),
            // It will not be accepted next time either: wait until the object changes.
            status if status.is_client_error() => Err(Error::terminal(failed(status))),
            status => Err(Error::other(failed(status))),
        }
    }
}

impl<P: Provider> FinalizingReconciler for Records<P> {
    type Object = Record;

    async fn reconcile(&self, record: &Record, ctx: &Context<Record>) -> Result<Action> {
        let RecordSpec { host, address } = record.spec.clone();
        self.send(Method::PUT, &host, address.clone()).await?;
        let conditions = Vec::new();
        ctx.set_status(RecordStatus {
            address,
            conditions,
        })?;
        // The provider reports no changes of its own: look again.
        Ok(Action::done().requeue_after(Duration::from_mins(5)))
    }

    async fn cleanup(&self, record: &Record, _: &Context<Record>) -> Result<Action> {
        let sent = self.send(Method::DELETE, &record.spec.host, String::new());
        sent.await.map(|()| Action::done())
    }
}
