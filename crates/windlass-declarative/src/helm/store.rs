//! The revisions of a release in the cluster: read from a watch, written before and after the
//! objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use windlass::handle::{Access, Delete, OwnedKinds, Reads, Verb, Writes};
use windlass::kind::{Key, KindInfo};
use windlass::watch::{Scope, Watch};
use windlass::{Declare, Error, Result, Watched, labels};

use super::annotations::LEGACY_FINALIZER;
use super::plan::Plan;
use super::release::{Release, SECRET_TYPE, Status as Stage, secret_name};
use super::stages::{Object, is_kept, objects_of, objects_of_manifest};
use super::status::{Reason, Status, Type};
use crate::{Desired, Entry, Inventory, Outcome, RendererContext};

/// What is being done for a custom resource.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) plan: Plan,
    /// Whether the custom resource is being deleted.
    pub(super) is_removal: bool,
}

/// What is being done, between the rendering and the end of the reconcile.
pub(super) type Steps = Arc<Mutex<BTreeMap<Key, Step>>>;

/// The revisions as an inventory: what a release consists of is what they say.
pub(super) struct Records {
    secrets: Reads<Secret>,
    writes: Writes<Secret>,
    parents: Writes<DynamicObject>,
    kinds: OwnedKinds,
    steps: Steps,
}

/// The Secrets of releases, each of which wakes the custom resource of its release.
pub(super) fn secrets(declare: &mut Declare<DynamicObject>) -> Reads<Secret> {
    let wakes: Watch<DynamicObject, Secret> = Secret::mapped_to(|secret: &Secret| {
        let labels = secret.metadata.labels.as_ref();
        let name = labels.and_then(|labels| labels.get("name"));
        match (&secret.metadata.namespace, name) {
            (Some(namespace), Some(name)) => {
                vec![Key::namespaced(namespace.as_str(), name.as_str())]
            }
            _ => Vec::new(),
        }
    });
    let owner = [("owner".to_owned(), "helm".to_owned())];
    declare.reads(wakes.scoped(Scope::all().labels(&owner.into_iter().collect())))
}

/// The revisions of the release of the reconciled object, the latest last.
pub(super) async fn history(
    secrets: &Reads<Secret>,
    ctx: &RendererContext,
) -> Result<Vec<Release>> {
    let of = labels([("owner", "helm"), ("name", ctx.key().name())]);
    let mut found = Vec::new();
    for secret in secrets.list(ctx, of).await? {
        if secret.type_.as_deref() != Some(SECRET_TYPE) {
            continue;
        }
        let secret = serde_json::to_value(&*secret).map_err(Error::other)?;
        found.push(
            Release::from_secret(&secret).map_err(|error| Error::terminal(error.to_string()))?,
        );
    }
    found.sort_by_key(Release::revision);
    Ok(found)
}

impl Records {
    pub(super) fn declare(
        declare: &mut Declare<DynamicObject>,
        parent: &KindInfo,
        steps: Steps,
    ) -> Self {
        Self {
            parents: declare.writes_kind(parent, Access::to([Verb::Patch])),
            secrets: secrets(declare),
            writes: declare.writes(Access::to([Verb::Create, Verb::Patch, Verb::Delete])),
            kinds: declare.owns_kinds([], []),
            steps,
        }
    }

    /// Takes away the finalizer of old operators, which nothing else would.
    async fn release_old(&self, ctx: &RendererContext, parent: &Value) -> Result<()> {
        let finalizers = parent["metadata"]["finalizers"].as_array();
        let finalizers = finalizers.map(Vec::as_slice).unwrap_or_default();
        let (old, others): (Vec<&Value>, Vec<&Value>) =
            finalizers.iter().partition(|one| **one == LEGACY_FINALIZER);
        if old.is_empty() {
            return Ok(());
        }
        let patch = json!({"metadata": {
            "uid": parent["metadata"]["uid"],
            "resourceVersion": parent["metadata"]["resourceVersion"],
            "finalizers": others,
        }});
        let parent = serde_json::from_value(parent.clone()).map_err(Error::other)?;
        self.parents.patch(ctx, &parent, patch).await?;
        Ok(())
    }

    fn step(&self, ctx: &RendererContext) -> Option<Step> {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.get(ctx.key()).cloned()
    }

    async fn write(&self, ctx: &RendererContext, release: &Release) -> Result<()> {
        let mut secret = release.secret();
        secret["metadata"]["ownerReferences"] = json!([ctx.owner_reference()]);
        let secret: Secret = serde_json::from_value(secret).map_err(Error::other)?;
        self.writes.apply(ctx, &secret).await?;
        Ok(())
    }

    async fn delete(&self, ctx: &RendererContext, revision: u64) -> Result<()> {
        let name = secret_name(ctx.key().name(), revision);
        if let Some(secret) = self.secrets.get(ctx, name).await? {
            self.writes
                .delete(ctx, &secret, Delete::background())
                .await?;
        }
        Ok(())
    }

    /// The objects of revisions that may be there, the first made first.
    async fn found(&self, ctx: &RendererContext) -> Result<Vec<Entry>> {
        let history = history(&self.secrets, ctx).await?;
        let deployed = history
            .iter()
            .rposition(|one| one.status() == Stage::Deployed);
        let mut entries: Vec<Entry> = Vec::new();
        // What was there before the deployed revision is deleted already, if it was not kept.
        for release in history.iter().skip(deployed.unwrap_or(0)) {
            for one in objects_of_release(release)? {
                let Some(entry) = self.entry(ctx, &one.object).await? else {
                    continue;
                };
                match entries
                    .iter_mut()
                    .find(|known| known.key == entry.key && known.kind == entry.kind)
                {
                    Some(known) => known.keep = entry.keep,
                    None => entries.push(entry),
                }
            }
        }
        Ok(entries)
    }

    async fn entry(&self, ctx: &RendererContext, object: &Value) -> Result<Option<Entry>> {
        let text = |path: &str| {
            object
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (version, name) = (text("/apiVersion"), text("/metadata/name"));
        let kind = match self.kinds.kind(ctx, version, text("/kind")).await {
            Ok(kind) => kind,
            // A kind that is not served has no objects.
            Err(error) if error.is_not_found() || is_unserved(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let namespace = match text("/metadata/namespace") {
            "" => ctx.key().namespace().unwrap_or_default(),
            namespace => namespace,
        };
        let key = if kind.namespaced {
            Key::namespaced(namespace, name)
        } else {
            Key::cluster(name)
        };
        Ok(Some(Entry {
            kind,
            key,
            keep: is_kept(object),
        }))
    }

    async fn end(
        &self,
        ctx: &RendererContext,
        parent: &Value,
        outcome: &Outcome,
    ) -> Result<Option<Value>> {
        let Some(Step { plan, is_removal }) = self.step(ctx) else {
            return Ok(None);
        };
        match outcome {
            Outcome::Applied => {
                for release in &plan.after {
                    self.write(ctx, release).await?;
                }
                for revision in &plan.forget {
                    self.delete(ctx, *revision).await?;
                }
                Ok(Some(plan.done_status).filter(|status| !status.is_null()))
            }
            Outcome::Waiting(_) => Ok(Some(plan.status).filter(|status| !status.is_null())),
            Outcome::Failed { error, lasting } => {
                let now = super::plan::shown(ctx.clock().now());
                let mut status = match &plan.status {
                    Value::Null => Status::of(parent),
                    status => Status::of(&json!({ "status": status })),
                };
                // A revision that cannot be applied ends; what follows is decided from that.
                let pending = plan.after.last().filter(|_| *lasting && !is_removal);
                let reason = match pending {
                    Some(release) if release.rollback_revision().is_none() => {
                        let mut failed = release.clone();
                        let upgrade = plan.after.len() > 1;
                        let what = if upgrade { "Upgrade" } else { "Release" };
                        let why = format!("{what} {:?} failed: {error}", release.name());
                        failed.set_status(Stage::Failed, &why);
                        self.write(ctx, &failed).await?;
                        let reason = if upgrade {
                            Reason::UpgradeError
                        } else {
                            Reason::InstallError
                        };
                        status.set(Type::ReleaseFailed, true, Some(reason), error, &now);
                        return Ok(Some(status.into_value()));
                    }
                    _ if is_removal => Reason::UninstallError,
                    _ => Reason::ReconcileError,
                };
                let of = if is_removal {
                    Type::ReleaseFailed
                } else {
                    Type::Irreconcilable
                };
                status.set(of, true, Some(reason), error, &now);
                Ok(Some(status.into_value()))
            }
        }
    }
}

/// Everything a revision makes: its objects, and those of its hooks.
fn objects_of_release(release: &Release) -> Result<Vec<Object>> {
    let wrong = |error: windlass_charts::Error| Error::terminal(error.to_string());
    let mut found = objects_of_manifest(release.manifest()).map_err(wrong)?;
    for hook in release.hooks() {
        found.extend(objects_of(hook.path(), hook.manifest()).map_err(wrong)?);
    }
    Ok(found)
}

fn is_unserved(error: &Error) -> bool {
    error.to_string().contains("does not serve it")
}

impl Inventory for Records {
    fn entries<'a>(
        &'a self,
        ctx: &'a RendererContext,
        _: &'a Value,
    ) -> BoxFuture<'a, Result<Vec<Entry>>> {
        Box::pin(self.found(ctx))
    }

    fn record<'a>(
        &'a self,
        ctx: &'a RendererContext,
        _: &'a Value,
        _: &'a Desired,
        _: &'a [Entry],
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for release in self.step(ctx).iter().flat_map(|step| &step.plan.before) {
                self.write(ctx, release).await?;
            }
            Ok(())
        })
    }

    fn settle<'a>(
        &'a self,
        ctx: &'a RendererContext,
        parent: &'a Value,
        _: &'a Desired,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<Option<Value>>> {
        Box::pin(self.end(ctx, parent, outcome))
    }

    fn forget<'a>(
        &'a self,
        ctx: &'a RendererContext,
        parent: &'a Value,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.release_old(ctx, parent).await?;
            for release in history(&self.secrets, ctx).await? {
                self.delete(ctx, release.revision()).await?;
            }
            let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
            steps.remove(ctx.key());
            Ok(())
        })
    }
}
