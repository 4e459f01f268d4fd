//! [`Engine`]: one reconcile of one parent.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use kube::core::{DynamicObject, SelectorExt};
use serde_json::{Value, json};
use windlass::{
    Action, Error, FinalizingReconciler, Reconciler, Result,
    error::Class,
    handle::{OwnedKinds, Writes},
    kind::{Key, KindInfo},
};

use crate::{
    Desired, Entry, Input, Inventory, Objects, Outcome, Renderer, RendererContext, Wanted, apply,
    deletion,
};

/// What a reconcile works with.
pub(crate) struct Engine {
    pub(crate) kind: KindInfo,
    /// The kinds that were declared.
    pub(crate) children: Vec<KindInfo>,
    /// Whether only declared kinds may be rendered.
    pub(crate) closed: bool,
    pub(crate) owned: OwnedKinds,
    pub(crate) parents: Writes<DynamicObject>,
    pub(crate) renderer: Arc<dyn Renderer>,
    pub(crate) inventory: Option<Arc<dyn Inventory>>,
    /// Whether the operator defines the kind of the parents.
    pub(crate) is_defined: bool,
    /// What was written as the status of a parent, and its uid and status before.
    pub(crate) given: Mutex<BTreeMap<Key, (Value, Value)>>,
}

/// The given status of so many parents is kept.
const KEPT: usize = 10_000;

/// What is wanted, by kind and key, with the number of its stage.
pub(crate) type Plan<'a> = BTreeMap<(KindInfo, Key), (usize, &'a Wanted)>;

impl Engine {
    /// Reconciles a parent that is not being deleted.
    async fn sync(&self, parent: &DynamicObject, ctx: &RendererContext) -> Result<Action> {
        let input = self.input(parent, ctx, false).await?;
        let desired = self.renderer.render(ctx, &input).await?;
        let (action, status) = self.carry_out(ctx, &input, &desired).await;
        let written = match status {
            Ok(Some(status)) => self.write_status(ctx, &input, status).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let action = action?;
        written.map(|()| action)
    }

    /// Writes the status of a parent. One that was written before and changed nothing is not sent
    /// again: the API server adds defaults to it, say, which it does not have.
    async fn write_status(
        &self,
        ctx: &RendererContext,
        input: &Input,
        status: Value,
    ) -> Result<()> {
        if self.is_defined {
            // The framework keeps conditions in it, which follow from how the reconcile ends.
            return ctx.set_status(status);
        }
        let parent = &input.parent;
        let before = json!([parent["metadata"]["uid"], parent["status"]]);
        let now = (status, before);
        if self.given().get(ctx.key()) == Some(&now) {
            return Ok(());
        }
        ctx.write_status(&now.0).await?;
        let mut given = self.given();
        // Those of parents that are gone go with the rest.
        if given.len() >= KEPT {
            given.clear();
        }
        given.insert(ctx.key().clone(), now);
        Ok(())
    }

    fn given(&self) -> MutexGuard<'_, BTreeMap<Key, (Value, Value)>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Undoes what was made for a parent that is being deleted.
    async fn finalize(&self, parent: &DynamicObject, ctx: &RendererContext) -> Result<Action> {
        let value = Arc::new(self.value_of(parent)?);
        if self.renderer.finalizes() {
            let input = self.input(parent, ctx, true).await?;
            let desired = self.renderer.render(ctx, &input).await?;
            let (action, status) = self.carry_out(ctx, &input, &desired).await;
            if let Some(status) = status? {
                ctx.write_status(status).await?;
            }
            let action = action?;
            if !desired.done {
                let waiting = Action::waiting("Finalizing", "the finalize hook is not done");
                return Ok(with_timer(waiting, &desired));
            }
            drop(action);
        }
        let Some(inventory) = &self.inventory else {
            return Ok(Action::done());
        };
        let entries = inventory.entries(ctx, &value).await?;
        if let Some(left) = deletion::delete_all(self, ctx, &entries).await? {
            let message = format!("{} {} is being deleted", left.kind, left.key);
            return Ok(Action::waiting("Deleting", message));
        }
        inventory.forget(ctx, &value).await?;
        Ok(Action::done())
    }

    async fn input(
        &self,
        parent: &DynamicObject,
        ctx: &RendererContext,
        finalizing: bool,
    ) -> Result<Input> {
        let parent = Arc::new(self.value_of(parent)?);
        let children = self.children(ctx, &parent, finalizing).await?;
        let related = self.renderer.related(ctx, &parent).await?;
        Ok(Input {
            kind: self.kind.clone(),
            parent,
            children,
            related,
            finalizing,
        })
    }

    fn value_of(&self, parent: &DynamicObject) -> Result<Value> {
        let value = serde_json::to_value(parent);
        let mut value = value
            .map_err(|error| Error::terminal(format!("cannot encode {}: {error}", self.kind)))?;
        value["apiVersion"] = self.kind.api_version().into();
        value["kind"] = self.kind.kind.as_str().into();
        Ok(value)
    }

    /// The children of the declared kinds, after those that match were adopted and those that do
    /// not were released.
    async fn children(
        &self,
        ctx: &RendererContext,
        parent: &Value,
        finalizing: bool,
    ) -> Result<Objects> {
        let selector = self.renderer.selector(parent)?;
        let mut children = Objects::new();
        for kind in &self.children {
            children.declare(kind);
            let mut found = self.owned.list(ctx, kind).await?;
            found.retain(|child| self.renderer.is_child(child));
            // What is on its way out claims nothing and lets nothing go.
            if let (Some(selector), false) = (&selector, finalizing) {
                let mut kept = Vec::with_capacity(found.len());
                for child in found {
                    let going = !child["metadata"]["deletionTimestamp"].is_null();
                    if going || selector.matches(&labels_of(&child)) {
                        kept.push(child);
                    } else {
                        self.owned.release(ctx, kind, &child).await?;
                    }
                }
                for orphan in self.owned.orphans(ctx, kind, selector.clone()).await? {
                    if orphan["metadata"]["deletionTimestamp"].is_null() {
                        kept.push(self.owned.adopt(ctx, kind, &orphan).await?);
                    }
                }
                found = kept;
            }
            for child in found {
                children.insert(kind, key_of(&child), Arc::new(child));
            }
        }
        Ok(children)
    }

    /// Does what is desired. The status is to be written however it ended.
    async fn carry_out(
        &self,
        ctx: &RendererContext,
        input: &Input,
        desired: &Desired,
    ) -> (Result<Action>, Result<Option<Value>>) {
        for event in &desired.events {
            ctx.event(event.clone());
        }
        if desired.unchanged {
            return (Ok(with_timer(Action::done(), desired)), Ok(None));
        }
        let result = self.write(ctx, input, desired).await;
        let outcome = match &result {
            Ok(None) => Outcome::Applied,
            Ok(Some(why)) => Outcome::Waiting(why.clone()),
            Err(error) => Outcome::Failed {
                error: error.to_string(),
                lasting: error.class() == Class::Terminal || error.is_forbidden(),
            },
        };
        let status = match &self.inventory {
            Some(inventory) => inventory
                .settle(ctx, &input.parent, desired, &outcome)
                .await
                .map(|status| status.or_else(|| desired.status.clone())),
            None => Ok(desired.status.clone()),
        };
        let action = result.map(|waiting| match waiting {
            None => with_timer(Action::done(), desired),
            Some(why) => with_timer(Action::waiting("NotReady", why), desired),
        });
        (action, status)
    }

    /// Writes what is desired and deletes what is not. Returns why it has to wait, if it has.
    async fn write(
        &self,
        ctx: &RendererContext,
        input: &Input,
        desired: &Desired,
    ) -> Result<Option<String>> {
        let plan = self.plan(ctx, input, desired).await?;
        let mut known = Vec::new();
        if let Some(inventory) = &self.inventory {
            known = inventory.entries(ctx, &input.parent).await?;
            // In the order in which they are made.
            let mut entries: Vec<(usize, Entry)> = plan
                .iter()
                .map(|((kind, key), (stage, wanted))| {
                    let (kind, key) = (kind.clone(), key.clone());
                    let keep = wanted.keep;
                    (*stage, Entry { kind, key, keep })
                })
                .collect();
            entries.sort_by_key(|(stage, _)| *stage);
            let entries: Vec<Entry> = entries.into_iter().map(|(_, entry)| entry).collect();
            inventory
                .record(ctx, &input.parent, desired, &entries)
                .await?;
        }
        self.decorate(ctx, input, desired).await?;
        if let Some(why) = apply::stages(self, ctx, input, desired, &plan).await? {
            return Ok(Some(why));
        }
        deletion::prune(self, ctx, input, &plan, &known).await?;
        Ok(None)
    }

    /// Where everything that is wanted belongs.
    async fn plan<'a>(
        &self,
        ctx: &RendererContext,
        input: &Input,
        desired: &'a Desired,
    ) -> Result<Plan<'a>> {
        let own = ctx.key().namespace();
        let mut plan = Plan::new();
        for (nth, stage) in desired.stages.iter().enumerate() {
            for wanted in stage {
                let text = |path: &str| {
                    let found = wanted.object.pointer(path).and_then(Value::as_str);
                    found.unwrap_or_default()
                };
                let (version, kind) = (text("/apiVersion"), text("/kind"));
                let name = text("/metadata/name");
                if version.is_empty() || kind.is_empty() || name.is_empty() {
                    return Err(refused(input, "an object without apiVersion, kind or name"));
                }
                let declared = self
                    .children
                    .iter()
                    .find(|one| one.kind == kind && one.api_version() == version);
                let kind = match declared {
                    Some(declared) => declared.clone(),
                    None if self.closed => {
                        let what = format!("{version} {kind} {name}, whose kind is not declared");
                        return Err(refused(input, &what));
                    }
                    None => self.owned.kind(ctx, version, kind).await?,
                };
                let namespace = text("/metadata/namespace");
                let namespace = Some(namespace).filter(|given| !given.is_empty()).or(own);
                let key = match namespace.filter(|_| kind.namespaced) {
                    Some(namespace) => Key::namespaced(namespace, name),
                    None if kind.namespaced => {
                        let what = format!("{kind} {name} without a namespace");
                        return Err(refused(input, &what));
                    }
                    None => Key::cluster(name),
                };
                let what = format!("{kind} {key} twice");
                if plan.insert((kind, key), (nth, wanted)).is_some() {
                    return Err(refused(input, &what));
                }
            }
        }
        Ok(plan)
    }

    /// Sets and removes labels and annotations of the parent.
    async fn decorate(
        &self,
        ctx: &RendererContext,
        input: &Input,
        desired: &Desired,
    ) -> Result<()> {
        if desired.labels.is_empty() && desired.annotations.is_empty() {
            return Ok(());
        }
        let parent = serde_json::from_value::<DynamicObject>((*input.parent).clone());
        let parent = parent
            .map_err(|error| Error::terminal(format!("cannot decode {}: {error}", self.kind)))?;
        let patch = json!({"metadata": {
            "uid": parent.metadata.uid,
            "labels": desired.labels,
            "annotations": desired.annotations,
        }});
        self.parents.patch(ctx, &parent, patch).await?;
        Ok(())
    }
}

fn refused(input: &Input, what: &str) -> Error {
    let (kind, key) = (&input.kind, key_of(&input.parent));
    Error::terminal(format!(
        "cannot apply what was rendered for {kind} {key}: {what}"
    ))
}

fn with_timer(action: Action, desired: &Desired) -> Action {
    match desired.again {
        Some(again) => action.requeue_after(again),
        None => action,
    }
}

/// The labels of an object as JSON.
pub(crate) fn labels_of(object: &Value) -> BTreeMap<String, String> {
    let labels = object
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    labels
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The key of an object as JSON.
pub(crate) fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match text("namespace") {
        "" => Key::cluster(text("name")),
        namespace => Key::namespaced(namespace, text("name")),
    }
}

/// For parents that have a finalizer.
pub(crate) struct WithFinalizer(pub(crate) Engine);

impl FinalizingReconciler for WithFinalizer {
    type Object = DynamicObject;

    async fn reconcile(&self, parent: &DynamicObject, ctx: &RendererContext) -> Result<Action> {
        boxed(self.0.sync(parent, ctx)).await
    }

    async fn cleanup(&self, parent: &DynamicObject, ctx: &RendererContext) -> Result<Action> {
        boxed(self.0.finalize(parent, ctx)).await
    }
}

/// For parents that have none.
pub(crate) struct WithoutFinalizer(pub(crate) Engine);

impl Reconciler for WithoutFinalizer {
    type Object = DynamicObject;

    async fn reconcile(&self, parent: &DynamicObject, ctx: &RendererContext) -> Result<Action> {
        boxed(self.0.sync(parent, ctx)).await
    }
}

/// The steps of a reconcile are a large future; it is kept on the heap.
fn boxed<'a>(
    work: impl Future<Output = Result<Action>> + Send + 'a,
) -> BoxFuture<'a, Result<Action>> {
    Box::pin(work)
}
