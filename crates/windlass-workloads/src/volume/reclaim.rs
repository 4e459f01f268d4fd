//! Volumes: free, taken, or given back.
//!
//! A volume whose claim is gone is released. What becomes of it then says its reclaim policy:
//! `Retain` leaves it to people, `Delete` removes it and its data, if it was made here.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Error, Event, Key, Reconciler, Result, Watched,
    handle::{Access, Delete, Reads, Verb, Writes},
};

use super::claim::volume_name;
use super::{BOUND_BY_CONTROLLER, LocalVolumes, PROVISIONED_BY, PROVISIONER, annotation, local};

/// The controller that follows volumes.
pub(crate) fn controller(local: Option<LocalVolumes>) -> Controller<PersistentVolume> {
    Controller::of_existing::<PersistentVolume>()
        .named("persistentvolume-reclaim")
        .reports_as("persistentvolume-controller")
        .reconciler(move |declare| Volumes::declare(declare, local.clone()))
}

struct Volumes {
    claims: Reads<PersistentVolumeClaim>,
    written: Writes<PersistentVolume>,
    local: Option<LocalVolumes>,
}

type Ctx = Context<PersistentVolume>;

impl Volumes {
    fn declare(declare: &mut Declare<PersistentVolume>, local: Option<LocalVolumes>) -> Self {
        Self {
            claims: declare.reads(PersistentVolumeClaim::referenced_by(
                |volume: &PersistentVolume| claim_key(volume),
            )),
            written: declare
                .writes(Access::to([Verb::Patch, Verb::Delete]).on("status", [Verb::Patch])),
            local,
        }
    }

    async fn report(
        &self,
        volume: &PersistentVolume,
        ctx: &Ctx,
        phase: &str,
        why: Option<String>,
    ) -> Result<()> {
        let mut status = volume.status.clone().unwrap_or_default();
        if status.phase.as_deref() != Some(phase) {
            status.last_phase_transition_time = Some(ctx.clock().time());
        }
        status.phase = Some(phase.to_owned());
        status.message = why;
        self.written.status(ctx, volume, status).await?;
        Ok(())
    }

    async fn reclaim(&self, volume: &PersistentVolume, ctx: &Ctx) -> Result<()> {
        let spec = volume.spec.as_ref();
        let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        if policy != Some("Delete") {
            return Ok(());
        }
        let made_by = annotation(&volume.metadata, PROVISIONED_BY);
        let is_going = volume.metadata.deletion_timestamp.is_some();
        if is_going || made_by.is_some_and(|by| by != PROVISIONER) {
            return Ok(());
        }
        let folder = self
            .local
            .as_ref()
            .and_then(|local| Some((local, local::folder(local, volume)?)));
        let removed = match folder {
            Some((local, folder)) => match (local.remove)(&folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.to_string()),
                _ => Ok(()),
            },
            None => Err("error getting deleter volume plugin for volume: no deletable volume plugin matched".to_owned()),
        };
        if let Err(why) = removed {
            ctx.event(Event::warning("VolumeFailedDelete", why.clone()));
            self.report(volume, ctx, "Failed", Some(why.clone()))
                .await?;
            return if self.local.is_some() {
                Err(Error::other(why))
            } else {
                Ok(())
            };
        }
        self.written.delete(ctx, volume, Delete::background()).await
    }
}

fn claim_key(volume: &PersistentVolume) -> Option<Key> {
    let reference = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(Key::namespaced(
        reference.namespace.clone()?,
        reference.name.clone()?,
    ))
}

impl Volumes {
    async fn follow(&self, volume: &PersistentVolume, ctx: &Ctx) -> Result<Action> {
        let reference = volume
            .spec
            .as_ref()
            .and_then(|spec| spec.claim_ref.as_ref());
        let Some((key, reference)) = claim_key(volume).zip(reference) else {
            self.report(volume, ctx, "Available", None).await?;
            return Ok(Action::done());
        };
        let Some(uid) = reference.uid.as_ref().filter(|uid| !uid.is_empty()) else {
            // Kept for a claim that has not taken it yet.
            self.report(volume, ctx, "Available", None).await?;
            return Ok(Action::done());
        };
        let claim = self.claims.get(ctx, &key).await?;
        let claim = claim.filter(|claim| claim.metadata.uid.as_ref() == Some(uid));
        let bound_to = claim.as_deref().map(volume_name);
        match bound_to {
            None => {
                // The cache may be behind a claim that was just made: its coming wakes us again.
                let failed = volume
                    .status
                    .as_ref()
                    .and_then(|status| status.phase.as_deref())
                    == Some("Failed");
                if !failed {
                    self.report(volume, ctx, "Released", None).await?;
                }
                self.reclaim(volume, ctx).await?;
            }
            Some(None) => {}
            Some(Some(name)) if name == ctx.key().name() => {
                self.report(volume, ctx, "Bound", None).await?;
            }
            Some(Some(_)) => {
                if annotation(&volume.metadata, BOUND_BY_CONTROLLER).is_some() {
                    let patch = json!({
                        "metadata": { "annotations": { BOUND_BY_CONTROLLER: null } },
                        "spec": { "claimRef": null },
                    });
                    self.written.patch(ctx, volume, patch).await?;
                } else {
                    let patch = json!({ "spec": { "claimRef": { "uid": null } } });
                    self.written.patch(ctx, volume, patch).await?;
                }
            }
        }
        Ok(Action::done())
    }
}

impl Reconciler for Volumes {
    type Object = PersistentVolume;

    async fn reconcile(&self, volume: &PersistentVolume, ctx: &Ctx) -> Result<Action> {
        self.follow(volume, ctx).await
    }

    /// One that is to go is still bound until its claim is gone, and only then lets go.
    async fn terminating(&self, volume: &PersistentVolume, ctx: &Ctx) -> Result<Action> {
        self.follow(volume, ctx).await
    }
}
