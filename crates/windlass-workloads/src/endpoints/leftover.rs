//! Endpoints whose Service is gone: they have no owner reference, so somebody has to remove them.
//!
//! The Service takes with it whatever Endpoints have its name, also those that somebody wrote by
//! hand. Endpoints that this cluster's controller wrote go as well when the Service went while
//! nobody looked; others that never had a Service are left alone.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Endpoints, Service};
use windlass::{
    Action, Context, Controller, Declare, Key, Reconciler, Result, Watched,
    handle::{Access, Delete, Reads, Verb, Writes},
    watch::Changed,
};

use super::legacy::{CONTROLLER, MANAGED_BY};

/// The controller that removes Endpoints.
pub(super) fn controller() -> Controller<Endpoints> {
    Controller::of_existing::<Endpoints>()
        .named("endpoint-leftover")
        .reports_as(CONTROLLER)
        .reconciler(Leftovers::declare)
}

struct Leftovers {
    services: Reads<Service>,
    written: Writes<Endpoints>,
    departed: Departed,
}

/// The Services that went while we looked, until their Endpoints have gone too.
#[derive(Clone, Default)]
struct Departed(Arc<Mutex<BTreeSet<Key>>>);

impl Departed {
    fn with<T>(&self, look: impl FnOnce(&mut BTreeSet<Key>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Leftovers {
    fn declare(declare: &mut Declare<Endpoints>) -> Self {
        let departed = Departed::default();
        let seen = departed.clone();
        Self {
            services: declare.reads(Service::handled_by(move |change| match change {
                Changed::Deleted(service) => {
                    let key = Key::of(service);
                    seen.with(|departed| departed.insert(key.clone()));
                    vec![key]
                }
                Changed::Added(service) => {
                    seen.with(|departed| departed.remove(&Key::of(service)));
                    Vec::new()
                }
                Changed::Updated { .. } => Vec::new(),
            })),
            written: declare.writes(Access::to([Verb::Delete])),
            departed,
        }
    }
}

impl Reconciler for Leftovers {
    type Object = Endpoints;

    async fn reconcile(&self, endpoints: &Endpoints, ctx: &Context<Endpoints>) -> Result<Action> {
        let labels = endpoints.metadata.labels.as_ref();
        let keeper = labels.and_then(|labels| labels.get(MANAGED_BY));
        let is_ours = keeper.is_some_and(|keeper| keeper == CONTROLLER);
        let has_departed = self.departed.with(|departed| departed.contains(ctx.key()));
        if (is_ours || has_departed) && self.services.get(ctx, ctx.key().name()).await?.is_none() {
            let how = Delete::background();
            self.written.delete(ctx, endpoints, how).await?;
        }
        Ok(Action::done())
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        self.departed.with(|departed| departed.remove(key));
        Ok(())
    }
}
