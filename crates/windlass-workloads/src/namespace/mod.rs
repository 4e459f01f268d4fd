//! The namespace controller: a namespace that is deleted takes everything in it along.
//!
//! A namespace carries the finalizer `kubernetes` in its spec, so a deletion only marks it. This
//! controller then deletes all [`content`], waits until it is gone (graceful pods, finalizers of
//! others), and removes its finalizer, upon which the API server lets the namespace go. The wait
//! is ended by the garbage collector, which sees every object of the cluster go.

mod condition;
mod content;

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, NamespaceStatus};
use windlass::{
    Access, Context, Controller, Declare, Grant, Next, Raw, Reconciled, Reconciler, Result, Verb,
    Writes,
};

use self::content::Remains;

/// The finalizer of the cluster itself.
const FINALIZER: &str = "kubernetes";

/// How long to wait for content before looking again, should nobody tell that it has gone.
const PATIENCE: Duration = Duration::from_secs(15);

/// The controller of namespaces that are going.
pub(crate) fn controller() -> Controller<Namespace, Reconciled<Namespace>> {
    Controller::of_existing::<Namespace>()
        .named("namespace")
        .reconciler(Namespaces::declare)
}

struct Namespaces {
    raw: Raw,
    namespaces: Writes<Namespace>,
}

impl Namespaces {
    fn declare(declare: &mut Declare<Namespace>) -> Self {
        Self {
            raw: declare.raw([Grant::everything([Verb::List, Verb::Delete])]),
            namespaces: declare.writes(
                Access::none()
                    .on("status", [Verb::Patch])
                    .on("finalize", [Verb::Update]),
            ),
        }
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
        self.namespaces.status(ctx, namespace, status).await?;
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
            .namespaces
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

    async fn reconcile(&self, _: &Namespace, _: &Context<Namespace>) -> Result<Next> {
        Ok(Next::settled())
    }

    async fn terminating(&self, namespace: &Namespace, ctx: &Context<Namespace>) -> Result<Next> {
        let finalizers = namespace
            .spec
            .as_ref()
            .and_then(|spec| spec.finalizers.as_deref());
        if !finalizers
            .unwrap_or_default()
            .iter()
            .any(|finalizer| finalizer == FINALIZER)
        {
            return Ok(Next::settled());
        }
        let remains = content::empty(&self.raw.client(ctx), ctx.key().name()).await?;
        if remains.is_empty() {
            self.release(namespace, ctx).await?;
            return Ok(Next::settled());
        }
        self.tell(namespace, ctx, &remains).await?;
        Ok(Next::after(PATIENCE))
    }
}
