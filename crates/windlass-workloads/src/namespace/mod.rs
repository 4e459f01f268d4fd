//! The namespace controller: a namespace that is deleted takes everything in it along.
//!
//! A namespace carries the finalizer `kubernetes` in its spec, so a deletion only marks it. This
//! controller then deletes all [`content`], waits with [`patience`] until it is gone (graceful pods,
//! finalizers of others), and removes its finalizer, upon which the API server lets the namespace
//! go.

mod condition;
mod content;
mod patience;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Namespace, NamespaceStatus};
use windlass::{
    Action, Context, Controller, Declare, Key, Reconciler, Result,
    handle::{Access, Raw, Verb, Writes},
};

use self::content::Remains;
use self::patience::Patience;
use crate::pending::Pending;

/// The finalizer of the cluster itself.
const FINALIZER: &str = "kubernetes";

/// The controller of namespaces that are going.
pub(crate) fn controller() -> Controller<Namespace> {
    Controller::of_existing::<Namespace>()
        .named("namespace")
        .reconciler(Namespaces::declare)
}

struct Namespaces {
    raw: Raw,
    written: Writes<Namespace>,
    patience: Mutex<BTreeMap<Key, Patience>>,
    pending: Pending,
}

impl Namespaces {
    fn declare(declare: &mut Declare<Namespace>) -> Self {
        Self {
            raw: declare.raw([Access::everything([Verb::List, Verb::Delete])]),
            written: declare.writes(
                Access::none()
                    .on("status", [Verb::Patch])
                    .on("finalize", [Verb::Update]),
            ),
            patience: Mutex::default(),
            pending: Pending::default(),
        }
    }

    fn patience(&self) -> MutexGuard<'_, BTreeMap<Key, Patience>> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is waited for any more.
    fn forget(&self, key: &Key) {
        self.patience().remove(key);
        self.pending.clear(key);
    }

    async fn tell(
        &self,
        namespace: &Namespace,
        ctx: &Context<Namespace>,
        remains: &Remains,
    ) -> Result<()> {
        let status = namespace.status.clone().unwrap_or_default();
        let before = status.conditions.as_deref().unwrap_or_default();
        let conditions = condition::conditions(remains, before, &ctx.clock().time());
        let status = NamespaceStatus {
            conditions: Some(conditions),
            ..status
        };
        self.written.status(ctx, namespace, status).await?;
        Ok(())
    }

    /// Removes our finalizer.
    async fn release(&self, namespace: &Namespace, ctx: &Context<Namespace>) -> Result<()> {
        let mut released = namespace.clone();
        let spec = released.spec.get_or_insert_default();
        spec.finalizers
            .get_or_insert_default()
            .retain(|finalizer| finalizer != FINALIZER);
        match self
            .written
            .put(ctx, ctx.key(), "finalize", &released)
            .await
        {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}

impl Reconciler for Namespaces {
    type Object = Namespace;

    async fn reconcile(&self, _: &Namespace, _: &Context<Namespace>) -> Result<Action> {
        Ok(Action::done())
    }

    async fn terminating(&self, namespace: &Namespace, ctx: &Context<Namespace>) -> Result<Action> {
        let finalizers = namespace
            .spec
            .as_ref()
            .and_then(|spec| spec.finalizers.as_deref());
        if !finalizers
            .unwrap_or_default()
            .iter()
            .any(|finalizer| finalizer == FINALIZER)
        {
            return Ok(Action::done());
        }
        let remains = content::empty(&self.raw.client(ctx), ctx.key().name()).await?;
        if remains.is_empty() {
            self.release(namespace, ctx).await?;
            self.forget(ctx.key());
            return Ok(Action::done());
        }
        self.tell(namespace, ctx, &remains).await?;
        let wait = self
            .patience()
            .entry(ctx.key().clone())
            .or_default()
            .wait(remains);
        if wait.under_way {
            return Ok(self
                .pending
                .after(ctx, wait.delay, "wait for its content to go"));
        }
        self.pending.clear(ctx.key());
        Ok(Action::done().requeue_after(wait.delay))
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        self.forget(key);
        Ok(())
    }
}
