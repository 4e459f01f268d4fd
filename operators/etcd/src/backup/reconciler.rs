//! The shell around the decision: takes one step, and records it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::join_all;
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::Time};
use kube::ResourceExt;
use tokio::time::timeout;
use windlass::{
    Action, Context, Declare, Error, Event, Reconciler, Result,
    handle::{Reads, Verb},
};

use super::{
    decision::{Step, decide, phase},
    due,
    kind::{BackupRun, BackupStatus, EtcdBackup, LastBackup},
    manifest::{self, Manifest},
    members::{Finder, NotFound},
    retention::{self, Kept},
    transfer::{self, TransferError},
};
use crate::{
    etcd::{Etcd, EtcdError, MemberStatus},
    member::hex,
    store::{Location, SecretData, Store, StoreError, Stores},
};

/// How long an attempt may take.
const TIMEOUT: i64 = 3600;

pub(crate) struct BackupKeeper {
    etcd: Arc<dyn Etcd>,
    stores: Arc<dyn Stores>,
    secrets: Reads<Secret>,
    finder: Finder,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Kubernetes(Error),
    #[error("{0}; store {1}, secret {2}")]
    Store(StoreError, String, String),
    #[error("there is no secret {0}")]
    NoSecret(String),
    #[error(transparent)]
    NotFound(#[from] NotFound),
    #[error(transparent)]
    Transfer(#[from] TransferError),
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    #[error("no member of the cluster can be backed up: {0}")]
    NoMember(String),
    #[error("the backup was not complete within {0} s")]
    TimedOut(i64),
    #[error("the backup {0} in the store is not what was uploaded; it is taken again")]
    Damaged(String),
    #[error("another backup was committed as {0}; this one is taken again")]
    Taken(String),
    #[error("storageType S3 needs the field s3")]
    NoStore,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Kubernetes(error)
    }
}

impl BackupKeeper {
    pub(crate) fn declare(
        declare: &mut Declare<EtcdBackup>,
        etcd: Arc<dyn Etcd>,
        stores: Arc<dyn Stores>,
    ) -> Self {
        Self {
            etcd,
            stores,
            secrets: declare.reads_live_by([Verb::Get]),
            finder: Finder {
                services: declare.reads_live_by([Verb::Get]),
                pods: declare.reads_live_by([Verb::List]),
            },
        }
    }

    async fn step(
        &self,
        backup: &EtcdBackup,
        ctx: &Context<EtcdBackup>,
        status: &mut BackupStatus,
    ) -> Result<Action, Failure> {
        let now = ctx.clock().now();
        let step = decide(&backup.spec, status, now);
        match step {
            Step::Plan => self.plan(backup, ctx, status).await?,
            Step::Upload(run) => {
                let policy = backup.spec.backup_policy.as_ref();
                let seconds = policy.and_then(|policy| policy.timeout_in_second);
                let seconds = seconds.filter(|seconds| *seconds > 0).unwrap_or(TIMEOUT);
                let limit = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
                let upload = self.upload(backup, ctx, status, run);
                let done = timeout(limit, upload).await;
                done.map_err(|_| Failure::TimedOut(seconds))??;
            }
            Step::Commit(run) => self.commit(backup, ctx, status, run).await?,
            Step::Prune => self.prune(backup, ctx, status).await?,
            Step::WaitUntil(time) => {
                phase::WAITING.clone_into(&mut status.phase);
                status.next_run = Some(Time(time));
                ctx.set_status(&*status)?;
                return Ok(Action::done().requeue_at(time));
            }
            Step::Suspended => {
                phase::SUSPENDED.clone_into(&mut status.phase);
                status.next_run = None;
                ctx.set_status(&*status)?;
                return Ok(Action::done());
            }
            Step::Rest => {
                phase::SUCCEEDED.clone_into(&mut status.phase);
                status.next_run = None;
                ctx.set_status(&*status)?;
                return Ok(Action::done());
            }
        }
        Ok(Action::in_progress(Duration::ZERO))
    }

    /// The sequence and the key, written down before anything is.
    async fn plan(
        &self,
        backup: &EtcdBackup,
        ctx: &Context<EtcdBackup>,
        status: &mut BackupStatus,
    ) -> Result<(), Failure> {
        let now = ctx.clock().now();
        let open = self.open(backup, ctx).await?;
        let member = self.member(backup, ctx).await?;
        let (sequence, key) = match backup.spec.interval() {
            None => (1, open.location.key.clone()),
            Some(interval) => {
                let kept = open.kept().await?;
                status.next_run = Some(Time(due::next(interval, now)));
                let time = now.strftime("%Y-%m-%d-%H:%M:%S");
                let key = format!("{}_v{}_{time}", open.location.key, member.1.revision);
                (retention::next_sequence(&kept), key)
            }
        };
        status.run = Some(BackupRun {
            sequence,
            path: format!("{}/{key}", open.location.place.bucket),
            start_time: Some(Time(now)),
            ..BackupRun::default()
        });
        phase::PLANNED.clone_into(&mut status.phase);
        Ok(ctx.write_status(&*status).await?)
    }

    /// From a member into the store.
    async fn upload(
        &self,
        backup: &EtcdBackup,
        ctx: &Context<EtcdBackup>,
        status: &mut BackupStatus,
        mut run: BackupRun,
    ) -> Result<(), Failure> {
        let open = self.open(backup, ctx).await?;
        let Some(key) = open.key_of(&run.path, backup.spec.interval().is_some()) else {
            // The path was changed meanwhile. What was uploaded there is no object.
            if let (Some(upload), Some(key)) = (&run.upload_id, open.in_bucket(&run.path)) {
                let _ = open.store.abort(key, upload).await;
            }
            status.run = None;
            status.phase.clear();
            return Ok(ctx.write_status(&*status).await?);
        };
        let (member, said) = self.member(backup, ctx).await?;
        run.cluster_id = hex(said.cluster_id);
        // An upload that is recorded goes on: its parts are sent again, in place of those it has.
        let upload = if let Some(upload) = run.upload_id.clone() {
            upload
        } else {
            let upload = open.store.begin(&key).await;
            let upload = upload.map_err(|error| open.failure(error))?;
            run.upload_id = Some(upload.clone());
            status.run = Some(run.clone());
            phase::UPLOADING.clone_into(&mut status.phase);
            ctx.write_status(&*status).await?;
            upload
        };
        let sent = transfer::upload(&*self.etcd, &member, &open.store, &key, &upload).await;
        let (checked, parts) = match sent {
            Ok(sent) => sent,
            Err(error) => {
                // Somebody aborted it.
                if let TransferError::Store(StoreError::NotFound(_)) = error {
                    run.upload_id = None;
                    status.run = Some(run);
                }
                return Err(open.transfer_failure(error));
            }
        };
        run.parts = parts;
        run.sha256 = checked.sha256;
        run.bytes = i64::try_from(checked.bytes).unwrap_or(i64::MAX);
        status.run = Some(run);
        phase::CHECKED.clone_into(&mut status.phase);
        Ok(ctx.write_status(&*status).await?)
    }

    /// The object is made of its parts, read back, and committed by its manifest.
    async fn commit(
        &self,
        backup: &EtcdBackup,
        ctx: &Context<EtcdBackup>,
        status: &mut BackupStatus,
        run: BackupRun,
    ) -> Result<(), Failure> {
        let open = self.open(backup, ctx).await?;
        let Some(key) = open.key_of(&run.path, backup.spec.interval().is_some()) else {
            status.run = None;
            status.phase.clear();
            return Ok(ctx.write_status(&*status).await?);
        };
        let name = manifest::key_of(&key);
        let uid = backup.uid().unwrap_or_default();
        let found = open.manifest(&name).await?;
        let is_ours = |one: &Manifest| {
            one.sha256 == run.sha256 && one.sequence == run.sequence && one.backup_uid == uid
        };
        if let Some(manifest) = found.as_ref().filter(|one| is_ours(one)) {
            // It was committed by a call whose answer got lost.
            return Self::committed(ctx, status, run, manifest).await;
        }
        if found.is_some() {
            if backup.spec.interval().is_some() {
                return Self::plan_again(ctx, status, &run).await;
            }
            // It is the manifest of what was there before, which the new object replaces.
            let deleted = open.store.delete(&name).await;
            deleted.map_err(|error| open.failure(error))?;
        }
        if let Some(upload) = &run.upload_id {
            let made = open.store.complete(&key, upload, run.parts.clone()).await;
            match made {
                // Perhaps by a call whose answer got lost: what is there is compared.
                Ok(()) | Err(StoreError::NotFound(_)) => {}
                Err(error) => return Err(open.failure(error)),
            }
        }
        let read = transfer::read_back(&open.store, &key, |_| Ok(())).await;
        let intact = match &read {
            Ok(Ok(checked)) => checked.sha256 == run.sha256,
            Ok(Err(_)) | Err(TransferError::NotWhole(_) | TransferError::Missing(_)) => false,
            Err(error) => return Err(open.transfer_failure(error.clone())),
        };
        if !intact {
            upload_again(ctx, status, &run).await?;
            return Err(Failure::Damaged(run.path.clone()));
        }
        let bytes = u64::try_from(run.bytes).unwrap_or(0);
        let facts = transfer::facts_of(&open.store, &key, bytes).await;
        let facts = facts.map_err(|error| open.transfer_failure(error))?;
        let manifest = Manifest {
            format: Manifest::FORMAT,
            sha256: run.sha256.clone(),
            bytes,
            revision: facts.revision,
            compact_revision: facts.compact_revision,
            etcd_version: facts.cluster_version,
            cluster_id: run.cluster_id.clone(),
            auth_enabled: facts.auth_enabled,
            sequence: run.sequence,
            backup_uid: uid.clone(),
        };
        let text = Bytes::from(manifest.to_text());
        match open.store.create(&name, text).await {
            Ok(()) => Self::committed(ctx, status, run, &manifest).await,
            Err(StoreError::AlreadyExists(_)) => Err(Failure::Taken(run.path)),
            Err(error) => Err(open.failure(error)),
        }
    }

    async fn committed(
        ctx: &Context<EtcdBackup>,
        status: &mut BackupStatus,
        run: BackupRun,
        manifest: &Manifest,
    ) -> Result<(), Failure> {
        status.succeeded = true;
        status.reason.clear();
        status.etcd_version.clone_from(&manifest.etcd_version);
        status.etcd_revision = Some(manifest.revision);
        status.last_success_date = Some(Time(ctx.clock().now()));
        let message = format!(
            "backup {} of {} bytes at revision {} was read back and committed",
            run.path, run.bytes, manifest.revision
        );
        status.last = Some(LastBackup {
            path: run.path,
            sequence: run.sequence,
            bytes: run.bytes,
            sha256: run.sha256,
            revision: manifest.revision,
        });
        status.run = None;
        phase::COMMITTED.clone_into(&mut status.phase);
        ctx.write_status(&*status).await?;
        ctx.event(Event::normal("BackupCommitted", message).action("Commit"));
        Ok(())
    }

    /// Somebody else has a backup of this name: another sequence and key are chosen.
    async fn plan_again(
        ctx: &Context<EtcdBackup>,
        status: &mut BackupStatus,
        run: &BackupRun,
    ) -> Result<(), Failure> {
        status.run = None;
        status.phase.clear();
        status.next_run = None;
        ctx.write_status(&*status).await?;
        Err(Failure::Taken(run.path.clone()))
    }

    /// What is too many goes: the manifest first, so that what has one can always be read.
    async fn prune(
        &self,
        backup: &EtcdBackup,
        ctx: &Context<EtcdBackup>,
        status: &mut BackupStatus,
    ) -> Result<(), Failure> {
        if backup.spec.interval().is_some() {
            let open = self.open(backup, ctx).await?;
            let kept = open.kept().await?;
            let uid = backup.uid().unwrap_or_default();
            let surplus = retention::surplus(&kept, &uid, backup.spec.max_backups());
            let own = kept
                .iter()
                .filter(|one| one.manifest.backup_uid == uid)
                .count();
            let left = own.saturating_sub(surplus.len());
            let new = surplus.iter().filter(|key| !status.pruning.contains(key));
            let new: Vec<String> = new.cloned().collect();
            if !new.is_empty() {
                status.pruning.extend(new);
                ctx.write_status(&*status).await?;
            }
            for key in &status.pruning {
                let manifest = manifest::key_of(key);
                for key in [&manifest, key] {
                    open.store
                        .delete(key)
                        .await
                        .map_err(|error| open.failure(error))?;
                }
            }
            status.kept = i64::try_from(left).ok();
        }
        status.pruning.clear();
        let periodic = backup.spec.interval().is_some();
        let phase = if periodic {
            phase::WAITING
        } else {
            phase::SUCCEEDED
        };
        phase.clone_into(&mut status.phase);
        Ok(ctx.write_status(&*status).await?)
    }

    async fn open(
        &self,
        backup: &EtcdBackup,
        ctx: &Context<EtcdBackup>,
    ) -> Result<Opened, Failure> {
        let source = backup.spec.s3.as_ref().ok_or(Failure::NoStore)?;
        let location = source.location();
        let location = location.map_err(TransferError::from)?;
        let secret = self.secrets.get(ctx, location.secret.as_str()).await?;
        let secret = secret.ok_or_else(|| Failure::NoSecret(location.secret.clone()))?;
        let data = secret_data(&secret);
        let store = self.stores.open(&location.place, &data);
        match store {
            Ok(store) => Ok(Opened { store, location }),
            Err(error) => Err(failure(error, &location)),
        }
    }

    /// The member that a snapshot is taken from, and what it says of itself: one with a vote that
    /// follows a leader and knows what was acknowledged before; not the leader, where there is
    /// another.
    async fn member(
        &self,
        backup: &EtcdBackup,
        ctx: &Context<EtcdBackup>,
    ) -> Result<(String, MemberStatus), Failure> {
        let urls = if let Some(cluster) = &backup.spec.etcd_cluster {
            self.finder.of_cluster(ctx, &cluster.name).await?
        } else {
            let found = self.finder.of_endpoints(ctx, &backup.spec.etcd_endpoints);
            found.await??
        };
        let answers = join_all(urls.iter().map(|url| self.etcd.status(url))).await;
        let mut silent = Vec::new();
        let mut able = Vec::new();
        for (url, answer) in urls.iter().zip(answers) {
            match answer {
                Ok(said) if said.learner || said.leader.is_none() => {
                    silent.push(format!("{url} follows no leader or has no vote"));
                }
                Ok(said) => able.push((said.leader == Some(said.member_id), url, said)),
                Err(error) => silent.push(format!("{url}: {error}")),
            }
        }
        able.sort_by_key(|(leads, _, said)| (*leads, std::cmp::Reverse(said.applied_index)));
        for (_, url, said) in able {
            // It knows everything that was acknowledged until now, once it has answered this.
            match self.etcd.members(std::slice::from_ref(url)).await {
                Ok(_) => return Ok((url.clone(), said)),
                Err(error) => silent.push(format!("{url}: {error}")),
            }
        }
        if silent.is_empty() {
            silent.push("no pod of it runs".to_owned());
        }
        Err(Failure::NoMember(silent.join("; ")))
    }
}

impl Reconciler for BackupKeeper {
    type Object = EtcdBackup;

    async fn reconcile(&self, backup: &EtcdBackup, ctx: &Context<EtcdBackup>) -> Result<Action> {
        let mut status = backup.status.clone().unwrap_or_default();
        status.observed_generation = backup.metadata.generation;
        // They follow from how this reconcile ends.
        status.conditions.clear();
        ctx.set_status(&status)?;
        match self.step(backup, ctx, &mut status).await {
            Ok(action) => Ok(action),
            Err(Failure::Kubernetes(error)) => Err(error),
            Err(failure) => {
                let reason = failure.to_string();
                if status.reason != reason {
                    ctx.event(Event::warning("BackupFailed", &reason).action("Backup"));
                }
                status.succeeded = false;
                status.reason.clone_from(&reason);
                ctx.set_status(&status)?;
                Err(Error::other(reason))
            }
        }
    }
}

/// The same run begins again with its upload.
async fn upload_again(
    ctx: &Context<EtcdBackup>,
    status: &mut BackupStatus,
    run: &BackupRun,
) -> Result<()> {
    status.run = Some(BackupRun {
        upload_id: None,
        parts: Vec::new(),
        sha256: String::new(),
        bytes: 0,
        ..run.clone()
    });
    phase::PLANNED.clone_into(&mut status.phase);
    ctx.write_status(&*status).await
}

/// A store, and where in it the backups are.
struct Opened {
    store: Arc<dyn Store>,
    location: Location,
}

impl Opened {
    /// The key of a path of a run; none if the spec names another place by now.
    fn key_of(&self, path: &str, periodic: bool) -> Option<String> {
        let key = self.in_bucket(path)?;
        let same = if periodic {
            retention::is_periodic(&self.location.key, key)
        } else {
            key == self.location.key
        };
        same.then(|| key.to_owned())
    }

    /// The key of a path; none if it is in another bucket.
    fn in_bucket<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.strip_prefix(&self.location.place.bucket)?
            .strip_prefix('/')
    }

    /// The backups of this path that count.
    async fn kept(&self) -> Result<Vec<Kept>, Failure> {
        let prefix = format!("{}_v", self.location.key);
        let listed = self
            .store
            .list(&prefix)
            .await
            .map_err(|error| self.failure(error))?;
        let mut kept = Vec::new();
        for name in &listed {
            let Some(key) = manifest::data_of(name) else {
                continue;
            };
            if !retention::is_periodic(&self.location.key, key) {
                continue;
            }
            if let Some(manifest) = self.manifest(name).await? {
                kept.push(Kept {
                    key: key.to_owned(),
                    manifest,
                });
            }
        }
        Ok(kept)
    }

    /// The manifest of that name, if it is one.
    async fn manifest(&self, name: &str) -> Result<Option<Manifest>, Failure> {
        let text = read_small(&self.store, name)
            .await
            .map_err(|error| self.failure(error))?;
        Ok(text.and_then(|text| Manifest::parse(&text)))
    }

    fn failure(&self, error: StoreError) -> Failure {
        failure(error, &self.location)
    }

    fn transfer_failure(&self, error: TransferError) -> Failure {
        match error {
            TransferError::Store(error) => self.failure(error),
            error => error.into(),
        }
    }
}

/// A small object, if it is there.
pub(crate) async fn read_small(
    store: &Arc<dyn Store>,
    key: &str,
) -> Result<Option<Bytes>, StoreError> {
    /// No manifest is longer.
    const LONGEST: u64 = 64 * 1024;
    match store.size(key).await? {
        Some(size) if size > 0 && size <= LONGEST => match store.read(key, 0..size).await {
            Ok(text) => Ok(Some(text)),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        },
        _ => Ok(None),
    }
}

pub(crate) fn secret_data(secret: &Secret) -> SecretData {
    let data = secret.data.iter().flatten();
    data.map(|(name, value)| (name.clone(), value.0.clone()))
        .collect()
}

fn failure(error: StoreError, location: &Location) -> Failure {
    let place = &location.place;
    let store = match place.endpoint.as_str() {
        "" => format!("bucket {}", place.bucket),
        endpoint => format!("bucket {} at {endpoint}", place.bucket),
    };
    Failure::Store(error, store, location.secret.clone())
}
