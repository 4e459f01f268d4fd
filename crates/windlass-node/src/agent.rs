//! The node's agent: a controller of the pods bound to this node.
//!
//! The controller hands each pod, with the ConfigMaps and Secrets its environment is made from, to
//! the pod's [`worker`], a task that lives as long as the pod does. The worker hears from the API
//! server through the controller and from the runtime directly, so the end of a process is acted
//! upon at once.

mod directory;
mod event;
mod worker;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service,
};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use windlass::{
    Action, Context, Controller, Declare, Error, Key, Reconciler, Result, Watched,
    handle::{Access, Raw, Reads, Verb},
    watch::{Scope, Select},
};

use crate::env::{Capacity, Sources, claims, references};
use crate::fault::Faults;
use crate::runtime::{Mail, Reports, Runtime};
use crate::volume::Volumes;
pub(crate) use directory::Directory;
use worker::Worker;
pub(crate) use worker::user;

/// Who the node is, in what its pods say.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) host_ip: String,
}

/// What the workers of a node have in common.
#[derive(Debug, Clone)]
pub(crate) struct Agency {
    pub(crate) identity: Identity,
    /// What the node has to give.
    pub(crate) capacity: Capacity,
    /// Where its pods are found by name.
    pub(crate) directory: Directory,
    /// Where volumes are made; nowhere on a node that only pretends.
    pub(crate) volumes: Option<Volumes>,
    pub(crate) faults: Faults,
}

/// The controller of the pods bound to a node.
pub(crate) fn controller<R: Runtime>(agency: Agency, runtime: Arc<R>) -> Controller<Pod> {
    let scope = Scope::all().field("spec.nodeName", &agency.identity.name);
    Controller::of_existing()
        .reconciler(move |declare| Agent::declare(declare, agency.clone(), runtime.clone()))
        .named("node")
        .scoped(scope)
}

struct Agent<R> {
    agency: Agency,
    runtime: Arc<R>,
    config_maps: Reads<ConfigMap>,
    secrets: Reads<Secret>,
    real: Option<RealReads>,
    raw: Raw,
    begun: OnceCell<()>,
    workers: Mutex<BTreeMap<Key, Hand>>,
}

/// What only matters where something really runs.
struct RealReads {
    claims: Reads<PersistentVolumeClaim>,
    services: Reads<Service>,
}

/// The way to a worker.
struct Hand {
    uid: String,
    reports: Reports,
    task: AbortHandle,
}

impl<R: Runtime> Agent<R> {
    fn declare(declare: &mut Declare<Pod>, agency: Agency, runtime: Arc<R>) -> Self {
        let mut grants = vec![
            Access::resource("", "pods/status", [Verb::Patch]),
            Access::of::<Pod>([Verb::Delete]),
            Access::of::<Event>([Verb::Create]),
        ];
        let real = agency.volumes.is_some().then(|| {
            grants.push(Access::of::<PersistentVolume>([Verb::Get]));
            grants.push(Access::resource(
                "",
                "serviceaccounts/token",
                [Verb::Create],
            ));
            RealReads {
                claims: declare.reads(PersistentVolumeClaim::referenced_by(claims)),
                // A container knows the Services that were there when it started.
                services: declare.reads(Service::triggering_none()),
            }
        });
        Self {
            agency,
            runtime,
            config_maps: declare.reads(ConfigMap::referenced_by(|pod: &Pod| references(pod).0)),
            secrets: declare.reads(Secret::referenced_by(|pod: &Pod| references(pod).1)),
            real,
            // The workers report when something happens on the machine, not when a reconcile
            // happens to run, so they need the client itself.
            raw: declare.raw(grants),
            begun: OnceCell::new(),
            workers: Mutex::default(),
        }
    }

    /// Tells the pod's worker how the pod should be; the first time, there is none yet.
    async fn deliver(&self, pod: &Pod, ctx: &Context<Pod>) -> Result<Action> {
        let begin = || self.runtime.begin(ctx.environment());
        self.begun
            .get_or_try_init(begin)
            .await
            .map_err(Error::other)?;
        let sources = self.sources(pod, ctx).await?;
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let mut workers = self.lock();
        if let Some(former) = workers.get(ctx.key()).filter(|hand| hand.uid != uid) {
            // Another pod of the same name.
            former.reports.send(Mail::Gone);
            workers.remove(ctx.key());
        }
        let hand = workers.entry(ctx.key().clone()).or_insert_with(|| {
            let (reports, inbox) = Reports::new(ctx.environment().activity.clone());
            let worker = Worker::new(
                self.runtime.clone(),
                self.agency.clone(),
                self.raw.client(ctx),
                ctx.environment().clone(),
                pod.clone(),
                reports.clone(),
            );
            Hand {
                uid,
                reports,
                task: tokio::spawn(worker.run(inbox)).abort_handle(),
            }
        });
        hand.reports
            .send(Mail::Desired(Box::new(pod.clone()), sources));
        Ok(Action::done())
    }

    async fn sources(&self, pod: &Pod, ctx: &Context<Pod>) -> Result<Sources> {
        let (config_maps, secrets) = references(pod);
        let mut sources = Sources::default();
        for name in config_maps {
            if let Some(map) = self.config_maps.get(ctx, &name).await? {
                sources.config_maps.insert(name, Arc::unwrap_or_clone(map));
            }
        }
        for name in secrets {
            if let Some(secret) = self.secrets.get(ctx, &name).await? {
                sources.secrets.insert(name, Arc::unwrap_or_clone(secret));
            }
        }
        if let Some(real) = &self.real {
            self.read_real(real, pod, ctx, &mut sources).await?;
        }
        Ok(sources)
    }

    async fn read_real(
        &self,
        real: &RealReads,
        pod: &Pod,
        ctx: &Context<Pod>,
        sources: &mut Sources,
    ) -> Result<()> {
        for name in claims(pod) {
            let Some(claim) = real.claims.get(ctx, &name).await? else {
                continue;
            };
            let volume = claim
                .spec
                .as_ref()
                .and_then(|spec| spec.volume_name.clone());
            if let Some(volume) = volume {
                let volumes: Api<PersistentVolume> = Api::all(self.raw.client(ctx));
                if let Some(volume) = volumes.get_opt(&volume).await? {
                    sources.volumes.insert(name.clone(), volume);
                }
            }
            sources.claims.insert(name, Arc::unwrap_or_clone(claim));
        }
        let spec = pod.spec.as_ref();
        if spec.is_none_or(|spec| spec.enable_service_links != Some(false)) {
            let services = real.services.list(ctx, Select::own_namespace()).await?;
            sources.services = services.into_iter().map(Arc::unwrap_or_clone).collect();
        }
        // The API server's own is known everywhere.
        let kubernetes = real.services.get(ctx, ("default", "kubernetes")).await?;
        if ctx.key().namespace() != Some("default") || sources.services.is_empty() {
            sources
                .services
                .extend(kubernetes.map(Arc::unwrap_or_clone));
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Hand>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Runtime> Reconciler for Agent<R> {
    type Object = Pod;

    async fn reconcile(&self, pod: &Pod, ctx: &Context<Pod>) -> Result<Action> {
        self.deliver(pod, ctx).await
    }

    async fn terminating(&self, pod: &Pod, ctx: &Context<Pod>) -> Result<Action> {
        self.deliver(pod, ctx).await
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        if let Some(hand) = self.lock().remove(key) {
            hand.reports.send(Mail::Gone);
        }
        Ok(())
    }
}

impl<R> Drop for Agent<R> {
    /// Without their controller the workers would act on what is no longer true.
    fn drop(&mut self) {
        let workers = self
            .workers
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for hand in workers.values() {
            hand.task.abort();
        }
    }
}

#[cfg(test)]
mod tests;
