//! A resource behind an HTTP API: a Record is an entry of a name service.
//!
//! What the API offers is a trait, so that tests simulate it; the operator is given what implements
//! it. Every step can be repeated: the next reconcile may follow a crash after any of them.

pub mod client;

use std::{future::Future, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{FinalizingReconciler, prelude::*};

/// Somebody may change the record at its provider, and nothing reports that: look again.
const RECHECK: Duration = Duration::from_mins(5);

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
#[serde(rename_all = "camelCase", default)]
pub struct RecordStatus {
    /// The address it resolves to.
    pub address: Option<String>,
    /// Kept by the framework.
    pub conditions: Vec<Condition>,
}

/// The provider's API. Both calls may be repeated.
pub trait NameService: Send + Sync + 'static {
    /// Makes the host resolve to the address.
    fn put(&self, host: &str, address: &str) -> impl Future<Output = Result<()>> + Send;

    /// Removes the host; fine if it is gone.
    fn delete(&self, host: &str) -> impl Future<Output = Result<()>> + Send;
}

/// The operator, with a client of the provider.
pub fn operator_with(service: Arc<impl NameService>) -> Operator {
    Operator::new("external-api")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(Controller::of::<Record>().reconciler(move |_| Records(Arc::clone(&service))))
}

/// The operator, with the provider that the environment names.
pub fn operator() -> Operator {
    operator_with(Arc::new(client::HttpClient::from_env()))
}

struct Records<S>(Arc<S>);

impl<S: NameService> FinalizingReconciler for Records<S> {
    type Object = Record;

    async fn reconcile(&self, record: &Record, ctx: &Context<Record>) -> Result<Action> {
        self.0.put(&record.spec.host, &record.spec.address).await?;
        let address = Some(record.spec.address.clone());
        ctx.set_status(RecordStatus {
            address,
            ..RecordStatus::default()
        })?;
        Ok(Action::requeue_after(RECHECK))
    }

    async fn cleanup(&self, record: &Record, ctx: &Context<Record>) -> Result<Action> {
        self.0.delete(&record.spec.host).await?;
        ctx.event(windlass::Event::normal("Removed", record.name_any()));
        Ok(Action::done())
    }
}
