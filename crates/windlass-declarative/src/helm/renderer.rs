//! The chart of a kind as a renderer.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Secret;
use kube::core::DynamicObject;
use serde_json::Value;
use tokio::sync::OnceCell;
use windlass::handle::{Access, OwnedKinds, Raw, Reads};
use windlass::{Declare, Error, Result};
use windlass_charts::Capabilities;

use super::lookups::{Lookups, Seen};
use super::plan::{Overrides, Plan, PlanError, Removal, Situation, plan, removal, shown};
use super::release::{Release, Status as Stage};
use super::stages::objects_of;
use super::status::{Reason, Status, Type};
use super::store::{Step, Steps, history, secrets};
use super::watches::Watch;
use crate::{Desired, Input, Renderer, RendererContext};

/// How often a chart is rendered until it has looked up everything it wants to see.
const MAX_LOOKUPS: usize = 8;

/// Renders the chart of a kind for its objects.
pub(super) struct Releases {
    watch: Arc<Watch>,
    overrides: Overrides,
    retry_after: Duration,
    secrets: Reads<Secret>,
    kinds: OwnedKinds,
    lookups: Lookups,
    raw: Raw,
    capabilities: OnceCell<Capabilities>,
    steps: Steps,
}

type Live = BTreeMap<String, Arc<Value>>;

impl Releases {
    pub(super) fn declare(
        declare: &mut Declare<DynamicObject>,
        watch: Arc<Watch>,
        overrides: Overrides,
        retry_after: Duration,
        access: &[Access],
        steps: Steps,
    ) -> Self {
        Self {
            watch,
            overrides,
            retry_after,
            secrets: secrets(declare),
            kinds: declare.owns_kinds([], []),
            lookups: Lookups::new(declare.watches(access.iter().cloned())),
            raw: declare.raw([]),
            capabilities: OnceCell::new(),
            steps,
        }
    }

    async fn desired(&self, ctx: &RendererContext, input: &Input) -> Result<Desired> {
        let history = history(&self.secrets, ctx).await?;
        let mut live = self.live(ctx, &history).await?;
        if input.finalizing {
            self.objects(ctx, &history, &mut live).await?;
        }
        let live = |object: &Value| live.get(&name_of(object)).cloned();
        if input.finalizing {
            return self.removed(ctx, &history, &live).await;
        }
        let capabilities = self
            .capabilities
            .get_or_try_init(|| super::capabilities::of(self.raw.client(ctx)))
            .await?;
        let mut seen = Seen::default();
        for _ in 0..MAX_LOOKUPS {
            let seen_by_chart = Arc::new(seen.clone());
            let planned = plan(&Situation {
                parent: &input.parent,
                chart: &self.watch.chart,
                overrides: &self.overrides,
                history: &history,
                capabilities,
                lookup: Some(Arc::clone(&seen_by_chart) as _),
                live: &live,
                now: ctx.clock().now(),
                retry_after: self.retry_after,
            });
            if !self
                .lookups
                .complete(ctx, &mut seen, &seen_by_chart.missing())
                .await?
            {
                return match planned {
                    Ok(plan) => Ok(self.carry_out(ctx, &history, plan)),
                    Err(error) => refuse(ctx, input, &history, &error),
                };
            }
        }
        Err(Error::terminal(format!(
            "chart {} looks up other objects each time it is rendered",
            self.watch.chart.name()
        )))
    }

    /// Keeps a plan until its revisions are written.
    fn carry_out(&self, ctx: &RendererContext, history: &[Release], plan: Plan) -> Desired {
        let mut stages = plan.stages.clone();
        // What a stored release consists of belongs to it, whoever made it.
        if !history.is_empty() {
            for wanted in stages.iter_mut().flatten() {
                wanted.adopt = true;
            }
        }
        let desired = Desired {
            stages,
            again: plan.again,
            events: plan.events.clone(),
            ..Desired::default()
        };
        self.keep(ctx, plan, false);
        desired
    }

    fn keep(&self, ctx: &RendererContext, plan: Plan, is_removal: bool) {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.insert(ctx.key().clone(), Step { plan, is_removal });
    }

    async fn removed(
        &self,
        ctx: &RendererContext,
        history: &[Release],
        live: &(dyn Fn(&Value) -> Option<Arc<Value>> + Sync),
    ) -> Result<Desired> {
        let now = ctx.clock().now();
        let are_gone = self.are_gone(ctx, history).await?;
        let Removal {
            before,
            stages,
            done,
        } = removal(history, live, now, are_gone)
            .map_err(|error| Error::terminal(error.to_string()))?;
        let plan = Plan {
            before,
            ..Plan::default()
        };
        self.keep(ctx, plan, true);
        Ok(Desired {
            stages,
            done,
            ..Desired::default()
        })
    }

    /// Whether nothing is left of the objects of the release, but for those that stay.
    async fn are_gone(&self, ctx: &RendererContext, history: &[Release]) -> Result<bool> {
        let Some(latest) = history.last() else {
            return Ok(true);
        };
        let objects = super::stages::objects_of_manifest(latest.manifest())
            .map_err(|error| Error::terminal(error.to_string()))?;
        for one in objects {
            let is_kept = super::stages::is_kept(&one.object);
            if !is_kept
                && let Some(found) = self.find(ctx, &one.object).await?
                && self.kinds.owns(ctx, &found)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The objects of the hooks of the latest revision, as they are.
    async fn live(&self, ctx: &RendererContext, history: &[Release]) -> Result<Live> {
        let mut live = Live::new();
        if !history.iter().any(|one| one.status() == Stage::Deployed) {
            self.definitions(ctx, &mut live).await?;
        }
        let Some(latest) = history.last() else {
            return Ok(live);
        };
        for hook in latest.hooks() {
            let objects = objects_of(hook.path(), hook.manifest())
                .map_err(|error| Error::terminal(error.to_string()))?;
            for one in objects {
                if let Some(found) = self.find(ctx, &one.object).await? {
                    live.insert(name_of(&one.object), Arc::new(found));
                }
            }
        }
        Ok(live)
    }

    /// The objects of the latest revision, as they are.
    async fn objects(
        &self,
        ctx: &RendererContext,
        history: &[Release],
        live: &mut Live,
    ) -> Result<()> {
        let Some(latest) = history.last() else {
            return Ok(());
        };
        let objects = super::stages::objects_of_manifest(latest.manifest())
            .map_err(|error| Error::terminal(error.to_string()))?;
        for one in objects {
            if let Some(found) = self.find(ctx, &one.object).await? {
                live.insert(name_of(&one.object), Arc::new(found));
            }
        }
        Ok(())
    }

    /// The definitions of `crds/`, as they are.
    async fn definitions(&self, ctx: &RendererContext, live: &mut Live) -> Result<()> {
        for file in self.watch.chart.crds() {
            let text = String::from_utf8_lossy(&file.data).into_owned();
            for document in windlass_charts::documents(&text) {
                let objects = objects_of(&file.name, document)
                    .map_err(|error| Error::terminal(error.to_string()))?;
                for one in objects {
                    if let Some(found) = self.find(ctx, &one.object).await? {
                        live.insert(name_of(&one.object), Arc::new(found));
                    }
                }
            }
        }
        Ok(())
    }

    async fn find(&self, ctx: &RendererContext, object: &Value) -> Result<Option<Value>> {
        let text = |path: &str| {
            object
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let kind = self
            .kinds
            .kind(ctx, text("/apiVersion"), text("/kind"))
            .await?;
        let namespace = match text("/metadata/namespace") {
            "" => ctx.key().namespace().unwrap_or_default(),
            namespace => namespace,
        };
        let name = text("/metadata/name");
        let key = if kind.namespaced {
            windlass::kind::Key::namespaced(namespace, name)
        } else {
            windlass::kind::Key::cluster(name)
        };
        self.kinds.get(ctx, &kind, &key).await
    }
}

/// Reports why there is nothing to be done.
fn refuse(
    ctx: &RendererContext,
    input: &Input,
    history: &[Release],
    error: &PlanError,
) -> Result<Desired> {
    let now = shown(ctx.clock().now());
    let mut status = Status::of(&input.parent);
    status.set(Type::Initialized, true, None, "", &now);
    let is_installed = history.iter().any(|one| one.status() == Stage::Deployed);
    let message = if is_installed || matches!(error, PlanError::AnotherChart { .. }) {
        let message = format!("failed to get candidate release: {error}");
        let reason = Some(Reason::ReconcileError);
        status.set(Type::Irreconcilable, true, reason, &message, &now);
        message
    } else {
        let message = format!("failed to install release: {error}");
        let reason = Some(Reason::InstallError);
        status.set(Type::ReleaseFailed, true, reason, &message, &now);
        message
    };
    ctx.set_status(status.into_value())?;
    Err(Error::terminal(message))
}

/// What an object is called, for those of one release.
fn name_of(object: &Value) -> String {
    let text = |path: &str| {
        object
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    format!(
        "{} {} {}/{}",
        text("/apiVersion"),
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name")
    )
}

impl Renderer for Releases {
    fn render<'a>(
        &'a self,
        ctx: &'a RendererContext,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<Desired>> {
        Box::pin(self.desired(ctx, input))
    }

    fn finalizes(&self) -> bool {
        true
    }
}
