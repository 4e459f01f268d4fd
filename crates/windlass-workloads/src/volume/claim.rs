//! Claims: bound to the volume that suits, or to one that is made for them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{
    ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus, Pod,
};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Event, Key, Reconciler, Result, Watched,
    handle::{Access, Reads, Verb, Writes},
    watch::{Changed, Select},
};

use super::matching::{best, class_of, is_meant_for};
use super::{BIND_COMPLETED, BOUND_BY_CONTROLLER, LocalVolumes, PROVISIONER, annotation, local};

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const STORAGE_PROVISIONER: [&str; 2] = [
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
];

/// The controller that binds claims.
pub(crate) fn controller(local: Option<LocalVolumes>) -> Controller<PersistentVolumeClaim> {
    Controller::of_existing::<PersistentVolumeClaim>()
        .named("persistentvolume-binder")
        .reports_as("persistentvolume-controller")
        // One at a time: each choice takes a volume from the others.
        .concurrency(1)
        .reconciler(move |declare| Claims::declare(declare, local.clone()))
}

struct Claims {
    volumes: Reads<PersistentVolume>,
    _free: Reads<PersistentVolume>,
    /// Claims that found no volume: to be looked at when one is free.
    searching: Arc<Mutex<BTreeSet<Key>>>,
    classes: Reads<StorageClass>,
    pods: Reads<Pod>,
    written: Writes<PersistentVolumeClaim>,
    volumes_written: Writes<PersistentVolume>,
    local: Option<LocalVolumes>,
}

type Ctx = Context<PersistentVolumeClaim>;

impl Claims {
    fn declare(declare: &mut Declare<PersistentVolumeClaim>, local: Option<LocalVolumes>) -> Self {
        let searching: Arc<Mutex<BTreeSet<Key>>> = Arc::default();
        let concerned = Arc::clone(&searching);
        // A volume concerns the claims that it and they name, and while it is free those that look
        // for one.
        let free = PersistentVolume::handled_by(move |change| {
            let (old, new) = match change {
                Changed::Added(volume) => (None, Some(volume)),
                Changed::Updated { old, new } => (Some(old), Some(new)),
                Changed::Deleted(volume) => (Some(volume), None),
            };
            let sides = [old, new].into_iter().flatten();
            let mut keys: Vec<Key> = sides.filter_map(claimed_by).collect();
            if new.is_some_and(|volume| claimed_by(volume).is_none()) {
                keys.extend(lock(&concerned).iter().cloned());
            }
            keys
        });
        Self {
            volumes: declare.reads(PersistentVolume::referenced_by(
                |claim: &PersistentVolumeClaim| volume_name(claim).map(Key::cluster),
            )),
            _free: declare.reads(free),
            searching,
            classes: declare.reads(StorageClass::triggering_all()),
            pods: declare.reads(Pod::triggering_none()),
            written: declare.writes(Access::to([Verb::Patch]).on("status", [Verb::Patch])),
            volumes_written: declare
                .writes(Access::to([Verb::Create, Verb::Patch]).on("status", [Verb::Patch])),
            local,
        }
    }

    async fn report(
        &self,
        claim: &PersistentVolumeClaim,
        ctx: &Ctx,
        phase: &str,
        volume: Option<&PersistentVolume>,
    ) -> Result<()> {
        let mut status = claim.status.clone().unwrap_or_default();
        status.phase = Some(phase.to_owned());
        status.access_modes = volume.and_then(|volume| volume.spec.as_ref()?.access_modes.clone());
        // What grew stays so: whoever resizes says how large it is.
        let has = status.capacity.take().filter(|_| volume.is_some());
        status.capacity =
            has.or_else(|| volume.and_then(|volume| volume.spec.as_ref()?.capacity.clone()));
        let status: PersistentVolumeClaimStatus = status;
        self.written.status(ctx, claim, status).await?;
        Ok(())
    }

    /// Binds both to one another, each half only if it is not yet.
    async fn bind(
        &self,
        claim: &PersistentVolumeClaim,
        ctx: &Ctx,
        volume: &PersistentVolume,
    ) -> Result<()> {
        let volume = self.bind_volume(claim, ctx, volume).await?;
        let name = volume.metadata.name.clone().unwrap_or_default();
        let mut volume_status = volume.status.clone().unwrap_or_default();
        volume_status.phase = Some("Bound".to_owned());
        self.volumes_written
            .status(ctx, &volume, volume_status)
            .await?;
        let chosen = volume_name(claim).is_none();
        let mut annotations = json!({ BIND_COMPLETED: "yes" });
        if chosen {
            annotations[BOUND_BY_CONTROLLER] = "yes".into();
        }
        let patch = json!({
            "metadata": { "annotations": annotations },
            "spec": { "volumeName": name },
        });
        let claim = self.written.patch(ctx, claim, patch).await?;
        self.report(&claim, ctx, "Bound", Some(&volume)).await
    }

    async fn bind_volume(
        &self,
        claim: &PersistentVolumeClaim,
        ctx: &Ctx,
        volume: &PersistentVolume,
    ) -> Result<PersistentVolume> {
        let reference = volume
            .spec
            .as_ref()
            .and_then(|spec| spec.claim_ref.as_ref());
        let uid = reference.and_then(|reference| reference.uid.as_deref());
        if uid.is_some() && uid == claim.metadata.uid.as_deref() {
            return Ok(volume.clone());
        }
        let wanted = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("PersistentVolumeClaim".to_owned()),
            name: claim.metadata.name.clone(),
            namespace: claim.metadata.namespace.clone(),
            uid: claim.metadata.uid.clone(),
            resource_version: claim.metadata.resource_version.clone(),
            field_path: None,
        };
        // What was read must still hold: nobody else took it meanwhile.
        let mut patch = json!({
            "metadata": { "resourceVersion": volume.metadata.resource_version },
            "spec": { "claimRef": wanted },
        });
        if reference.is_none() {
            patch["metadata"]["annotations"] = json!({ BOUND_BY_CONTROLLER: "yes" });
        }
        self.volumes_written.patch(ctx, volume, patch).await
    }

    /// What becomes of a claim for which there is no volume.
    async fn provide(
        &self,
        claim: &PersistentVolumeClaim,
        ctx: &Ctx,
        class: Option<&StorageClass>,
        waits: bool,
    ) -> Result<()> {
        self.report(claim, ctx, "Pending", None).await?;
        if waits {
            let (reason, note) = self.waiting_for(claim, ctx).await?;
            ctx.event(Event::normal(reason, note));
            return Ok(());
        }
        if class_of(claim).is_empty() {
            let note = "no persistent volumes available for this claim and no storage class is set";
            ctx.event(Event::normal("FailedBinding", note));
            return Ok(());
        }
        let Some(class) = class else {
            let note = format!(
                "storageclass.storage.k8s.io {:?} not found",
                class_of(claim)
            );
            ctx.event(Event::warning("ProvisioningFailed", note));
            return Ok(());
        };
        match &self.local {
            Some(local) if class.provisioner == PROVISIONER => {
                let annotations = json!({ STORAGE_PROVISIONER[1]: PROVISIONER, STORAGE_PROVISIONER[0]: PROVISIONER });
                let patch = json!({ "metadata": { "annotations": annotations } });
                let claim = self.written.patch(ctx, claim, patch).await?;
                let volume = local::volume(local, class, &claim);
                let name = volume.metadata.name.clone().unwrap_or_default();
                match self.volumes_written.create(ctx, &volume).await {
                    Err(error) if !error.is_already_exists() => {
                        let note = format!(
                            "failed to provision volume with StorageClass {:?}: {error}",
                            class_of(&claim)
                        );
                        ctx.event(Event::warning("ProvisioningFailed", note));
                        return Err(error);
                    }
                    _ => {}
                }
                let note = format!("Successfully provisioned volume {name}");
                ctx.event(Event::normal("ProvisioningSucceeded", note));
                Ok(())
            }
            _ => {
                let provisioner = &class.provisioner;
                let annotations = json!({ STORAGE_PROVISIONER[0]: provisioner, STORAGE_PROVISIONER[1]: provisioner });
                let patch = json!({ "metadata": { "annotations": annotations } });
                self.written.patch(ctx, claim, patch).await?;
                let note = format!(
                    "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
                );
                ctx.event(Event::normal("ExternalProvisioning", note));
                Ok(())
            }
        }
    }

    /// Whom a claim waits for: a pod that uses it, or that pod's node.
    async fn waiting_for(
        &self,
        claim: &PersistentVolumeClaim,
        ctx: &Ctx,
    ) -> Result<(&'static str, String)> {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let pods = self.pods.list(ctx, Select::own_namespace()).await?;
        let mut users = pods.iter().filter(|pod| {
            crate::pod::node_name(pod).is_none()
                && crate::pod::is_active(pod)
                && crate::protection::claims_of(pod)
                    .iter()
                    .any(|one| one == name)
        });
        Ok(match users.next() {
            Some(pod) => {
                let pod = pod.metadata.name.as_deref().unwrap_or_default();
                (
                    "WaitForPodScheduled",
                    format!("waiting for pod {pod} to be scheduled"),
                )
            }
            None => (
                "WaitForFirstConsumer",
                "waiting for first consumer to be created before binding".to_owned(),
            ),
        })
    }
}

/// The volume that a claim names.
pub(crate) fn volume_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    let name = claim.spec.as_ref()?.volume_name.as_deref()?;
    (!name.is_empty()).then_some(name)
}

impl Reconciler for Claims {
    type Object = PersistentVolumeClaim;

    async fn reconcile(&self, claim: &PersistentVolumeClaim, ctx: &Ctx) -> Result<Action> {
        let is_complete = annotation(&claim.metadata, BIND_COMPLETED).is_some();
        let Some(name) = volume_name(claim) else {
            let class = self.classes.get(ctx, class_of(claim)).await?;
            let mode = class
                .as_ref()
                .and_then(|class| class.volume_binding_mode.as_deref());
            let waits = mode == Some("WaitForFirstConsumer")
                && annotation(&claim.metadata, SELECTED_NODE).is_none();
            let volumes = self.volumes.list(ctx, Select::own_namespace()).await?;
            if let Some(volume) = best(claim, &volumes, waits) {
                self.bind(claim, ctx, volume).await?;
            } else {
                lock(&self.searching).insert(ctx.key().clone());
                self.provide(claim, ctx, class.as_deref(), waits).await?;
            }
            return Ok(Action::done());
        };
        lock(&self.searching).remove(ctx.key());
        let volume = self.volumes.get(ctx, name).await?;
        let is_free = |volume: &PersistentVolume| {
            volume
                .spec
                .as_ref()
                .is_none_or(|spec| spec.claim_ref.is_none())
        };
        match volume {
            Some(volume) if is_meant_for(&volume, claim) => self.bind(claim, ctx, &volume).await?,
            Some(volume) if is_free(&volume) && !is_complete => {
                self.bind(claim, ctx, &volume).await?;
            }
            None if is_complete => {
                if phase(claim) != "Lost" {
                    let note =
                        "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
                    ctx.event(Event::warning("ClaimLost", note));
                }
                self.report(claim, ctx, "Lost", None).await?;
            }
            Some(_) if is_complete => {
                if phase(claim) != "Lost" {
                    let note =
                        "Two claims are bound to the same volume, this one is bound incorrectly";
                    ctx.event(Event::warning("ClaimMisbound", note));
                }
                self.report(claim, ctx, "Lost", None).await?;
            }
            other => {
                if other.is_some() {
                    let note = format!("volume {name:?} already bound to a different claim.");
                    ctx.event(Event::warning("FailedBinding", note));
                }
                self.report(claim, ctx, "Pending", None).await?;
            }
        }
        Ok(Action::done())
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        lock(&self.searching).remove(key);
        Ok(())
    }
}

/// The claim that a volume is bound to, or kept for.
fn claimed_by(volume: &PersistentVolume) -> Option<Key> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(Key::namespaced(
        claim.namespace.as_deref()?,
        claim.name.as_deref()?,
    ))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    let status = claim.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Pending")
}
