//! [`Decorator`]: the renderer of a decorator controller.

use std::sync::Arc;

use futures::future::BoxFuture;
use kube::core::{DynamicObject, Selector, SelectorExt};
use serde_json::{Value, json};
use windlass::{Declare, Result, kind::KindInfo};

use super::{
    answer::{Answered, DECORATOR},
    composite::{failed, later},
    hook::Said,
    kinds::{AnnotationSelector, DecoratedResource, DecoratorControllerSpec, UpdateMethod},
    related::Related,
    request,
    resolve::Callers,
};
use crate::{Desired, Input, Method, Objects, Ready, Renderer, RendererContext, Wanted};

/// The annotation of attachments: the decorator controller that made them.
const MADE_BY: &str = "metacontroller.k8s.io/decorator-controller";

/// What a decorator controller says, with what it came to.
pub(super) struct Settings {
    pub(super) name: String,
    pub(super) spec: DecoratorControllerSpec,
    /// The controller, as hooks are sent it.
    pub(super) controller: Value,
    pub(super) callers: Callers,
    /// The kinds of the attachments, in the order of `attachments`.
    pub(super) children: Vec<KindInfo>,
}

/// The renderer of a decorator controller, for one of its kinds.
pub(super) struct Decorator {
    settings: Arc<Settings>,
    related: Related,
}

impl Decorator {
    pub(super) fn new(settings: &Arc<Settings>, declare: &mut Declare<DynamicObject>) -> Self {
        Self {
            settings: Arc::clone(settings),
            related: Related::new(declare, settings.callers.customize.is_some()),
        }
    }

    fn method(&self, attachment: &Value) -> Method {
        let of = |kind: &KindInfo| {
            attachment["kind"] == *kind.kind && attachment["apiVersion"] == kind.api_version()
        };
        let place = self.settings.children.iter().position(of);
        let rule = place.and_then(|place| self.settings.spec.attachments.get(place));
        let strategy = rule.and_then(|rule| rule.update_strategy.as_ref());
        match strategy
            .and_then(|strategy| strategy.method)
            .unwrap_or_default()
        {
            UpdateMethod::OnDelete => Method::OnDelete,
            UpdateMethod::InPlace | UpdateMethod::RollingInPlace => Method::InPlace,
            UpdateMethod::Recreate | UpdateMethod::RollingRecreate => Method::Recreate,
        }
    }
}

impl Renderer for Decorator {
    fn render<'a>(
        &'a self,
        ctx: &'a RendererContext,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<Desired>> {
        Box::pin(async move {
            let Settings {
                callers,
                controller,
                name,
                ..
            } = &*self.settings;
            let hook = match (&callers.finalize, input.finalizing) {
                (Some(finalize), true) => finalize,
                _ => &callers.sync,
            };
            let request = json!({
                "controller": controller,
                "object": &*input.parent,
                "attachments": request::map_of(&input.children, hook.version, &input.parent),
                "related": request::map_of(&input.related, hook.version, &input.parent),
                "finalizing": input.finalizing,
            });
            let about = request::about(&input.kind, ctx.key());
            let said = hook
                .call(&about, &request, DECORATOR, ctx.clock().now())
                .await;
            let answer = match said {
                Ok(Said::Answer(answer)) => answer,
                Ok(Said::Later(after)) => return Ok(later(after)),
                Err(error) => return Err(failed(ctx, error)),
            };
            let answered = Answered::of(&answer, "attachments")
                .map_err(|error| failed(ctx, format!("{} hook failed: {error}", hook.name)))?;
            let attachment = |attachment: &Value| {
                let mut object = attachment.clone();
                object["metadata"]["annotations"][MADE_BY] = name.as_str().into();
                let method = self.method(attachment);
                Wanted::new(object).method(method).ready(Ready::Exists)
            };
            Ok(Desired {
                stages: vec![answered.children.iter().map(attachment).collect()],
                status: answered.status,
                labels: answered.labels,
                annotations: answered.annotations,
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
                ..
            } = &*self.settings;
            let text = |field: &str| parent[field].as_str().unwrap_or_default().to_owned();
            let (version, kind) = (text("apiVersion"), text("kind"));
            let (group, version) = version.split_once('/').unwrap_or(("", &version));
            let kind = KindInfo {
                group: group.to_owned(),
                version: version.to_owned(),
                plural: kind.to_lowercase(),
                kind,
                namespaced: ctx.key().namespace().is_some(),
            };
            let hook = callers.customize.as_ref();
            self.related
                .objects(ctx, hook, controller, &kind, parent)
                .await
        })
    }

    fn is_child(&self, object: &Value) -> bool {
        object["metadata"]["annotations"][MADE_BY] == *self.settings.name
    }
}

/// Whether a decorator controller is about an object.
pub(super) fn selects(
    resource: &DecoratedResource,
) -> Result<impl Fn(&DynamicObject) -> bool + Send + Sync + use<>, String> {
    let labels = match &resource.label_selector {
        Some(labels) => Selector::try_from(labels.clone())
            .map_err(|error| format!("invalid labelSelector: {error}"))?,
        None => Selector::default(),
    };
    let annotations = resource.annotation_selector.clone().unwrap_or_default();
    let annotations = annotations_of(&annotations)?;
    Ok(move |object: &DynamicObject| {
        let metadata = &object.metadata;
        labels.matches(
            metadata
                .labels
                .as_ref()
                .unwrap_or(&std::collections::BTreeMap::new()),
        ) && annotations.matches(
            metadata
                .annotations
                .as_ref()
                .unwrap_or(&std::collections::BTreeMap::new()),
        )
    })
}

fn annotations_of(given: &AnnotationSelector) -> Result<Selector, String> {
    let as_labels = k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector {
        match_labels: Some(given.match_annotations.clone()),
        match_expressions: Some(given.match_expressions.clone()),
    };
    Selector::try_from(as_labels).map_err(|error| format!("invalid annotationSelector: {error}"))
}
