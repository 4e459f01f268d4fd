//! The shell around the decision: takes one step, and records it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::join_all;
use k8s_openapi::{
    api::core::v1::{PersistentVolumeClaim, Pod, Secret},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;
use serde_json::json;
use windlass::{
    Action, Context, Declare, Error, Event, Reconciler, Result, Watched,
    handle::{Access, Delete, Reads, Verb, Writes},
    watch::Select,
};

use super::{
    decision::{ClusterFacts, Step, decide, phase},
    kind::{EtcdRestore, RestoreStatus, SnapshotFacts},
    plan::{PLAN, Plan, Source},
};
use crate::{
    backup::{
        manifest::{self, Manifest},
        read_small, secret_data,
        transfer::{self, TransferError},
    },
    etcd::Etcd,
    kind::{EtcdCluster, EtcdClusterSpec},
    member::CLIENT_PORT,
    objects,
    store::{Location, Store, StoreError, Stores},
};

/// How soon a cluster is asked again.
const SOON: Duration = Duration::from_secs(2);

pub(crate) struct Restorer {
    etcd: Arc<dyn Etcd>,
    stores: Arc<dyn Stores>,
    clusters: Reads<EtcdCluster>,
    write_clusters: Writes<EtcdCluster>,
    secrets: Reads<Secret>,
    pods: Reads<Pod>,
    claims: Reads<PersistentVolumeClaim>,
    write_claims: Writes<PersistentVolumeClaim>,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Kubernetes(Error),
    #[error("{0}; bucket {1}, secret {2}")]
    Store(StoreError, String, String),
    #[error("there is no secret {0}")]
    NoSecret(String),
    #[error(transparent)]
    Transfer(TransferError),
    #[error("the backup is damaged, and the cluster is left as it is: {0}")]
    Damaged(String),
    #[error(
        "the backup asks clients who they are (auth is enabled in it), which is not supported yet"
    )]
    Auth,
    #[error("backupStorageType S3 needs the field s3")]
    NoStore,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Kubernetes(error)
    }
}

impl Restorer {
    pub(crate) fn declare(
        declare: &mut Declare<EtcdRestore>,
        etcd: Arc<dyn Etcd>,
        stores: Arc<dyn Stores>,
    ) -> Self {
        let named = |restore: &EtcdRestore| Some(restore.spec.etcd_cluster.name.clone());
        Self {
            etcd,
            stores,
            clusters: declare.reads(EtcdCluster::referenced_by(named)),
            write_clusters: declare.writes(Access::to([Verb::Create, Verb::Patch])),
            secrets: declare.reads_live_by([Verb::Get]),
            pods: declare.reads_live_by([Verb::List]),
            claims: declare.reads_live_by([Verb::List]),
            write_claims: declare.writes(Access::to([Verb::Delete])),
        }
    }

    async fn step(
        &self,
        restore: &EtcdRestore,
        ctx: &Context<EtcdRestore>,
        status: &mut RestoreStatus,
    ) -> Result<Action, Failure> {
        let name = restore.spec.etcd_cluster.name.as_str();
        let cluster = self.clusters.get(ctx, name).await?;
        let cluster = cluster.filter(|one| one.metadata.deletion_timestamp.is_none());
        let facts = cluster.as_deref().map(facts_of);
        let now = ctx.clock().now();
        match decide(&restore.spec, status, facts.as_ref(), now) {
            Step::Verify => self.verify(restore, facts.as_ref(), ctx, status).await?,
            Step::Create => {
                if let (Some(spec), Some(plan)) =
                    (&restore.spec.cluster_spec, plan_of(restore, status))
                {
                    let made = made(name, spec, &plan);
                    self.write_clusters.create(ctx, &made).await?;
                }
            }
            Step::Fence => {
                if let (Some(cluster), Some(plan)) = (&cluster, plan_of(restore, status)) {
                    let version = &cluster.metadata.resource_version;
                    let patch = json!({ "metadata": {
                        "resourceVersion": version,
                        "annotations": { PLAN: plan.to_text() },
                    }});
                    self.write_clusters.patch(ctx, cluster, patch).await?;
                    let message = format!(
                        "EtcdCluster {name} is replaced by incarnation {} from {}",
                        plan.incarnation, plan.source.key
                    );
                    ctx.event(Event::normal("Restoring", message).action("Fence"));
                }
            }
            Step::BeginAgain => {
                let incarnation = facts.as_ref().map_or(0, |facts| facts.incarnation) + 1;
                begin(restore, status, incarnation);
                phase::VERIFIED.clone_into(&mut status.phase);
                ctx.write_status(&*status).await?;
            }
            Step::Await(phase, what) => {
                phase.clone_into(&mut status.phase);
                what.clone_into(&mut status.reason);
                ctx.set_status(&*status)?;
                return Ok(Action::waiting(phase, what));
            }
            Step::Confirm => return self.confirm(restore, ctx, status).await,
            Step::CleanUp => {
                if let Some(cluster) = &cluster {
                    self.clean_up(cluster, ctx, status).await?;
                }
                status.cleaned = true;
                ctx.write_status(&*status).await?;
            }
            Step::KeepUntil(time) => {
                ctx.set_status(&*status)?;
                return Ok(Action::done().requeue_at(time));
            }
            Step::Refuse(why) => {
                if status.phase.is_empty() {
                    phase::PENDING.clone_into(&mut status.phase);
                }
                if status.reason != why {
                    ctx.event(Event::warning("RestoreRefused", &why).action("Wait"));
                }
                status.reason.clone_from(&why);
                ctx.set_status(&*status)?;
                return Ok(Action::waiting("RestoreRefused", why));
            }
            Step::Rest => {
                ctx.set_status(&*status)?;
                return Ok(Action::done());
            }
        }
        Ok(Action::in_progress(Duration::ZERO))
    }

    /// Reads the whole backup; nothing has been done to the cluster yet.
    async fn verify(
        &self,
        restore: &EtcdRestore,
        cluster: Option<&ClusterFacts>,
        ctx: &Context<EtcdRestore>,
        status: &mut RestoreStatus,
    ) -> Result<(), Failure> {
        let source = restore.spec.s3.as_ref().ok_or(Failure::NoStore)?;
        let location = source
            .location()
            .map_err(|error| Failure::Transfer(error.into()))?;
        let secret = self.secrets.get(ctx, location.secret.as_str()).await?;
        let secret = secret.ok_or_else(|| Failure::NoSecret(location.secret.clone()))?;
        let data = secret_data(&secret);
        let opened = self.stores.open(&location.place, &data);
        let store: Arc<dyn Store> = opened.map_err(|error| of_store(error, &location))?;
        let read = transfer::read_back(&store, &location.key, |_| Ok(())).await;
        let checked = match read {
            Ok(Ok(checked)) => checked,
            Ok(Err(error)) => return Err(Failure::Damaged(error.to_string())),
            Err(error) => return Err(of_transfer(error, &location)),
        };
        let facts = transfer::facts_of(&store, &location.key, checked.bytes).await;
        let facts = facts.map_err(|error| of_transfer(error, &location))?;
        let manifest = read_small(&store, &manifest::key_of(&location.key)).await;
        let manifest = manifest.map_err(|error| of_store(error, &location))?;
        let manifest = manifest.and_then(|text| Manifest::parse(&text));
        if let Some(manifest) = &manifest
            && manifest.sha256 != checked.sha256
        {
            let message = "its SHA-256 is not the one in its manifest";
            return Err(Failure::Damaged(message.to_owned()));
        }
        if facts.auth_enabled {
            return Err(Failure::Auth);
        }
        status.snapshot = Some(SnapshotFacts {
            path: format!("{}/{}", location.place.bucket, location.key),
            bytes: i64::try_from(checked.bytes).unwrap_or(i64::MAX),
            sha256: checked.sha256,
            revision: facts.revision,
            etcd_version: facts.cluster_version,
            has_manifest: manifest.is_some(),
        });
        begin(
            restore,
            status,
            cluster.map_or(0, |facts| facts.incarnation) + 1,
        );
        status.reason.clear();
        phase::VERIFIED.clone_into(&mut status.phase);
        Ok(ctx.write_status(&*status).await?)
    }

    /// Whether a member that clients reach has the revision of the backup, by a read that a
    /// majority agrees to.
    async fn confirm(
        &self,
        restore: &EtcdRestore,
        ctx: &Context<EtcdRestore>,
        status: &mut RestoreStatus,
    ) -> Result<Action, Failure> {
        let name = restore.spec.etcd_cluster.name.as_str();
        let mut labels = objects::labels(name);
        if let Some(token) = &status.token {
            labels.insert(objects::CLUSTER_UID.to_owned(), token.clone());
        }
        let pods = self.pods.list(ctx, Select::labels(labels)).await?;
        let urls = pods.iter().filter_map(|pod| {
            let address = pod.status.as_ref()?.pod_ip.as_ref()?;
            Some(if address.contains(':') {
                format!("http://[{address}]:{CLIENT_PORT}")
            } else {
                format!("http://{address}:{CLIENT_PORT}")
            })
        });
        let urls: Vec<String> = urls.collect();
        let wanted = status.snapshot.as_ref().map_or(0, |one| one.revision);
        let mut found = None;
        if !urls.is_empty() && self.etcd.members(&urls).await.is_ok() {
            let answers = join_all(urls.iter().map(|url| self.etcd.status(url))).await;
            let answers = answers
                .into_iter()
                .flatten()
                .filter(|said| said.leader.is_some());
            found = answers.map(|said| said.revision).max();
        }
        match found {
            Some(revision) if revision >= wanted => {}
            _ => {
                phase::SERVING.clone_into(&mut status.phase);
                status.reason = format!("no member confirms revision {wanted} yet");
                ctx.set_status(&*status)?;
                return Ok(Action::in_progress(SOON));
            }
        }
        status.succeeded = true;
        status.reason.clear();
        status.completion_date = Some(Time(ctx.clock().now()));
        phase::SUCCEEDED.clone_into(&mut status.phase);
        ctx.write_status(&*status).await?;
        let message = format!("EtcdCluster {name} serves the backup of revision {wanted}");
        ctx.event(Event::normal("Restored", message).action("Confirm"));
        Ok(Action::in_progress(Duration::ZERO))
    }

    /// Deletes the volumes of incarnations before this one.
    async fn clean_up(
        &self,
        cluster: &EtcdCluster,
        ctx: &Context<EtcdRestore>,
        status: &RestoreStatus,
    ) -> Result<(), Failure> {
        let current = cluster.status.clone().unwrap_or_default();
        // A later restore decides about what is old then.
        if Some(current.incarnation) != status.incarnation {
            return Ok(());
        }
        let token = current.token.as_deref().unwrap_or_default();
        let uid = cluster.uid().unwrap_or_default();
        let labels = objects::labels(&cluster.name_any());
        for claim in self.claims.list(ctx, Select::labels(labels)).await? {
            let owners = claim.owner_references().iter();
            let ours = owners
                .clone()
                .any(|one| one.controller == Some(true) && one.uid == uid);
            let of = claim.labels().get(objects::CLUSTER_UID);
            if ours && of.is_some_and(|of| of != token) {
                self.write_claims
                    .delete(ctx, claim.as_ref(), Delete::background())
                    .await?;
            }
        }
        Ok(())
    }
}

impl Reconciler for Restorer {
    type Object = EtcdRestore;

    async fn reconcile(&self, restore: &EtcdRestore, ctx: &Context<EtcdRestore>) -> Result<Action> {
        let mut status = restore.status.clone().unwrap_or_default();
        status.observed_generation = restore.metadata.generation;
        // They follow from how this reconcile ends.
        status.conditions.clear();
        ctx.set_status(&status)?;
        match self.step(restore, ctx, &mut status).await {
            Ok(action) => Ok(action),
            Err(Failure::Kubernetes(error)) => Err(error),
            Err(failure) => {
                let reason = failure.to_string();
                if status.reason != reason {
                    ctx.event(Event::warning("RestoreFailed", &reason).action("Restore"));
                }
                if status.phase.is_empty() {
                    phase::PENDING.clone_into(&mut status.phase);
                }
                status.reason.clone_from(&reason);
                ctx.set_status(&status)?;
                Err(Error::other(reason))
            }
        }
    }
}

/// A new incarnation is recorded before the cluster is asked for it.
fn begin(restore: &EtcdRestore, status: &mut RestoreStatus, incarnation: i64) {
    status.attempts += 1;
    status.incarnation = Some(incarnation);
    status.token = Some(format!(
        "{}-{}",
        restore.uid().unwrap_or_default(),
        status.attempts
    ));
}

fn plan_of(restore: &EtcdRestore, status: &RestoreStatus) -> Option<Plan> {
    let location = restore.spec.s3.as_ref()?.location().ok()?;
    let snapshot = status.snapshot.as_ref()?;
    Some(Plan {
        restore: restore.name_any(),
        incarnation: status.incarnation?,
        token: status.token.clone()?,
        source: Source {
            place: location.place,
            key: location.key,
            secret: location.secret,
            sha256: snapshot.sha256.clone(),
        },
    })
}

/// A cluster that begins with the backup.
fn made(name: &str, spec: &EtcdClusterSpec, plan: &Plan) -> EtcdCluster {
    let mut cluster = EtcdCluster::new(name, spec.clone());
    cluster.metadata.annotations = Some(BTreeMap::from([(PLAN.to_owned(), plan.to_text())]));
    cluster
}

fn facts_of(cluster: &EtcdCluster) -> ClusterFacts {
    let status = cluster.status.clone().unwrap_or_default();
    let is = |kind: &str, reason: Option<&str>| {
        status.conditions.iter().any(|one| {
            one.type_ == kind
                && one.status == "True"
                && reason.is_none_or(|reason| one.reason == reason)
        })
    };
    let size = cluster.spec.size;
    ClusterFacts {
        incarnation: status.incarnation,
        version: cluster.spec.version().to_owned(),
        paused: cluster.spec.paused,
        has_plan: matches!(Plan::of(cluster), Ok(Some(plan)) if plan.incarnation > status.incarnation),
        available: is("Available", None),
        lost: is("Degraded", Some("QuorumLost")),
        begun: status.cluster_id.is_some(),
        seeded: status.seed.is_some(),
        complete: status.ready_members == size && status.size == size,
    }
}

fn of_store(error: StoreError, location: &Location) -> Failure {
    Failure::Store(
        error,
        location.place.bucket.clone(),
        location.secret.clone(),
    )
}

fn of_transfer(error: TransferError, location: &Location) -> Failure {
    match error {
        TransferError::Store(error) => of_store(error, location),
        TransferError::NotWhole(why) => Failure::Damaged(why.to_string()),
        TransferError::Invalid(why) => Failure::Damaged(why.to_owned()),
        error => Failure::Transfer(error),
    }
}
