//! [`Composite`]: the renderer of a composite controller.

use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{DynamicObject, Selector, SelectorExt};
use serde_json::{Value, json};
use windlass::{Declare, Error, Event, Result, handle::OwnedKinds, kind::KindInfo};

use super::{
    answer::{Answered, COMPOSITE},
    hook::Said,
    kinds::{ChildResource, CompositeControllerSpec, UpdateMethod},
    related::Related,
    request,
    resolve::Callers,
    revisions,
};
use crate::{
    Desired, Input, Method, Objects, Ready, Renderer, RendererContext, Wanted, engine::labels_of,
};

/// The label of a generated selector.
const UID: &str = "controller-uid";

/// What a composite controller says, with what it came to.
pub(super) struct Settings {
    pub(super) spec: CompositeControllerSpec,
    /// The controller, as hooks are sent it.
    pub(super) controller: Value,
    pub(super) callers: Callers,
    pub(super) parent: KindInfo,
    /// The kinds of the children, in the order of `childResources`.
    pub(super) children: Vec<KindInfo>,
}

impl Settings {
    /// What is said about a kind of children.
    pub(super) fn rule(&self, kind: &KindInfo) -> Option<&ChildResource> {
        let place = self.children.iter().position(|one| one == kind)?;
        self.spec.child_resources.get(place)
    }

    pub(super) fn method(&self, kind: &KindInfo) -> UpdateMethod {
        let strategy = self
            .rule(kind)
            .and_then(|rule| rule.update_strategy.as_ref());
        strategy
            .and_then(|strategy| strategy.method)
            .unwrap_or_default()
    }

    fn is_rolling(&self) -> bool {
        self.children
            .iter()
            .any(|kind| self.method(kind).is_rolling())
    }

    fn generates_selector(&self) -> bool {
        self.spec.generate_selector == Some(true)
    }

    /// The declared kind of an object.
    pub(super) fn kind_of(&self, object: &Value) -> Option<&KindInfo> {
        self.children
            .iter()
            .find(|kind| object["kind"] == *kind.kind && object["apiVersion"] == kind.api_version())
    }
}

/// The renderer of a composite controller.
pub(super) struct Composite {
    pub(super) settings: Arc<Settings>,
    /// Children and revisions.
    pub(super) owned: OwnedKinds,
    related: Related,
}

/// An answer with what it wants.
pub(super) struct Rendered {
    pub(super) answered: Answered,
    pub(super) wanted: Vec<Wanted>,
}

impl Composite {
    pub(super) fn new(settings: &Arc<Settings>, declare: &mut Declare<DynamicObject>) -> Self {
        let mut kinds = settings.children.clone();
        if settings.is_rolling() {
            kinds.push(revisions::kind());
        }
        Self {
            settings: Arc::clone(settings),
            owned: declare.owns_kinds(kinds, []),
            related: Related::new(declare, settings.callers.customize.is_some()),
        }
    }

    /// Asks the hook what a parent, or an earlier revision of it, wants. None: not now.
    pub(super) async fn ask(
        &self,
        ctx: &RendererContext,
        input: &Input,
        parent: &Value,
        related: &Objects,
    ) -> Result<Result<Rendered, std::time::Duration>> {
        let Settings {
            callers,
            controller,
            ..
        } = &*self.settings;
        let hook = match (&callers.finalize, input.finalizing) {
            (Some(finalize), true) => finalize,
            _ => &callers.sync,
        };
        let request = json!({
            "controller": controller,
            "parent": parent,
            "children": request::map_of(&input.children, hook.version, parent),
            "related": request::map_of(related, hook.version, parent),
            "finalizing": input.finalizing,
        });
        let about = request::about(&input.kind, ctx.key());
        let said = hook
            .call(&about, &request, COMPOSITE, ctx.clock().now())
            .await;
        let answer = match said {
            Ok(Said::Answer(answer)) => answer,
            Ok(Said::Later(after)) => return Ok(Err(after)),
            Err(error) => return Err(failed(ctx, error)),
        };
        let answered = Answered::of(&answer, "children")
            .map_err(|error| failed(ctx, format!("{} hook failed: {error}", hook.name)))?;
        let wanted = self.wanted(&answered, parent)?;
        Ok(Ok(Rendered { answered, wanted }))
    }

    /// The children of an answer, as they are to be applied.
    fn wanted(&self, answered: &Answered, parent: &Value) -> Result<Vec<Wanted>> {
        let selector = self.selects(parent)?;
        let own = parent
            .pointer("/metadata/namespace")
            .and_then(Value::as_str);
        let mut wanted = Vec::new();
        for child in &answered.children {
            let mut child = child.clone();
            if self.settings.generates_selector() && child["metadata"]["labels"][UID].is_null() {
                child["metadata"]["labels"][UID] = parent["metadata"]["uid"].clone();
            }
            let kind = self.settings.kind_of(&child);
            let name = child["metadata"]["name"].as_str().unwrap_or_default();
            if !selector.matches(&labels_of(&child)) {
                return Err(Error::terminal(format!(
                    "labels of child {} {name} do not match the parent's selector",
                    child["kind"].as_str().unwrap_or_default()
                )));
            }
            if let (Some(own), Some(true)) = (own, kind.map(|kind| kind.namespaced))
                && child["metadata"]["namespace"].is_null()
            {
                child["metadata"]["namespace"] = own.into();
            }
            let method = match kind
                .map(|kind| self.settings.method(kind))
                .unwrap_or_default()
            {
                UpdateMethod::OnDelete => Method::OnDelete,
                UpdateMethod::InPlace | UpdateMethod::RollingInPlace => Method::InPlace,
                UpdateMethod::Recreate | UpdateMethod::RollingRecreate => Method::Recreate,
            };
            wanted.push(Wanted::new(child).method(method).ready(Ready::Exists));
        }
        Ok(wanted)
    }

    fn selects(&self, parent: &Value) -> Result<Selector> {
        if self.settings.generates_selector() {
            let uid = parent["metadata"]["uid"].as_str().unwrap_or_default();
            return Ok([(UID.to_owned(), uid.to_owned())].into_iter().collect());
        }
        let invalid =
            |why: &dyn std::fmt::Display| Error::terminal(format!("invalid .spec.selector: {why}"));
        let given = parent
            .pointer("/spec/selector")
            .cloned()
            .unwrap_or_default();
        let given: Option<LabelSelector> =
            serde_json::from_value(given).map_err(|error| invalid(&error))?;
        let given = given.unwrap_or_default();
        let is_empty = given
            .match_labels
            .as_ref()
            .is_none_or(std::collections::BTreeMap::is_empty)
            && given.match_expressions.as_ref().is_none_or(Vec::is_empty);
        if is_empty {
            return Err(invalid(
                &"it needs matchLabels or matchExpressions (or generateSelector in the controller)",
            ));
        }
        Selector::try_from(given).map_err(|error| invalid(&error))
    }

    /// The status that is written: the hook's, with the generation it is of.
    fn status(answered: &Answered, parent: &Value) -> Value {
        let mut status = answered.status.clone().unwrap_or_else(|| json!({}));
        status["observedGeneration"] = parent["metadata"]["generation"].clone();
        status
    }
}

/// Reports a failed hook as the original does.
pub(super) fn failed(ctx: &RendererContext, why: String) -> Error {
    ctx.event(Event::warning("SyncError", format!("Sync error: {why}")).action("Sync"));
    Error::other(why)
}

impl Renderer for Composite {
    fn render<'a>(
        &'a self,
        ctx: &'a RendererContext,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<Desired>> {
        Box::pin(async move {
            let parent = &*input.parent;
            let newest = match self.ask(ctx, input, parent, &input.related).await? {
                Ok(newest) => newest,
                Err(after) => return Ok(later(after)),
            };
            let newest = if self.settings.is_rolling() {
                match revisions::roll(self, ctx, input, newest).await? {
                    Ok(newest) => newest,
                    Err(after) => return Ok(later(after)),
                }
            } else {
                newest
            };
            let Rendered { answered, wanted } = newest;
            Ok(Desired {
                stages: vec![wanted],
                status: Some(Self::status(&answered, parent)),
                again: answered.again,
                done: answered.finalized,
                events: answered.events,
                ..Desired::default()
            })
        })
    }

    fn finalizes(&self) -> bool {
        self.settings.callers.finalize.is_some()
    }

    fn related<'a>(
        &'a self,
        ctx: &'a RendererContext,
        parent: &'a Value,
    ) -> BoxFuture<'a, Result<Objects>> {
        Box::pin(async move {
            let Settings {
                callers,
                controller,
                parent: kind,
                ..
            } = &*self.settings;
            let hook = callers.customize.as_ref();
            self.related
                .objects(ctx, hook, controller, kind, parent)
                .await
        })
    }

    fn selector(&self, parent: &Value) -> Result<Option<Selector>> {
        self.selects(parent).map(Some)
    }
}

/// Everything stays as it is until the hook wants to be asked again.
pub(super) fn later(after: std::time::Duration) -> Desired {
    Desired {
        unchanged: true,
        again: Some(after),
        ..Desired::default()
    }
}
