//! Volumes: kept while they are bound to a claim.

use k8s_openapi::api::core::v1::PersistentVolume;
use windlass::{
    Action, Context, Controller, Declare, Reconciler, Result,
    handle::{Access, Verb, Writes},
};

use super::{add, has, remove};

const FINALIZER: &str = "kubernetes.io/pv-protection";

/// The controller that protects volumes.
pub(crate) fn controller() -> Controller<PersistentVolume> {
    Controller::of_existing::<PersistentVolume>()
        .named("pv-protection")
        .reconciler(Volumes::declare)
}

struct Volumes {
    written: Writes<PersistentVolume>,
}

impl Volumes {
    fn declare(declare: &mut Declare<PersistentVolume>) -> Self {
        Self {
            written: declare.writes(Access::to([Verb::Update])),
        }
    }
}

fn is_bound(volume: &PersistentVolume) -> bool {
    let phase = volume
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    phase == Some("Bound")
}

impl Reconciler for Volumes {
    type Object = PersistentVolume;

    async fn reconcile(
        &self,
        volume: &PersistentVolume,
        ctx: &Context<PersistentVolume>,
    ) -> Result<Action> {
        // Admission does this; a volume from elsewhere has it done here.
        if !has(&volume.metadata, FINALIZER) {
            let mut protected = volume.clone();
            add(&mut protected.metadata, FINALIZER);
            self.written.update(ctx, &protected).await?;
        }
        Ok(Action::done())
    }

    async fn terminating(
        &self,
        volume: &PersistentVolume,
        ctx: &Context<PersistentVolume>,
    ) -> Result<Action> {
        if !has(&volume.metadata, FINALIZER) || is_bound(volume) {
            return Ok(Action::done());
        }
        let mut released = volume.clone();
        remove(&mut released.metadata, FINALIZER);
        match self.written.update(ctx, &released).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(Action::done()),
        }
    }
}
