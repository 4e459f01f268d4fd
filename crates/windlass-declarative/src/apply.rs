//! Applying what is wanted, stage by stage.

use serde_json::Value;
use windlass::{Error, Result, handle::Delete, kind::Key, kind::KindInfo};

use crate::{
    Desired, Input, Method, Ready, RendererContext, Wanted,
    engine::{Engine, Plan},
};

/// Applies the stages. Returns why one is not ready, if a later one has to wait for that.
///
/// Objects of one stage do not depend on each other: one that fails does not keep the others from
/// being applied. The first error is returned then, and no later stage begins.
pub(crate) async fn stages(
    engine: &Engine,
    ctx: &RendererContext,
    input: &Input,
    desired: &Desired,
    plan: &Plan<'_>,
) -> Result<Option<String>> {
    for nth in 0..desired.stages.len() {
        let mut failed: Option<Error> = None;
        let mut waiting = None;
        for ((kind, key), (stage, wanted)) in plan {
            if *stage != nth {
                continue;
            }
            match one(engine, ctx, input, kind, key, wanted).await {
                Ok(None) => {}
                Ok(Some(why)) => waiting = waiting.or(Some(why)),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let is_last = desired.stages[nth + 1..].iter().all(Vec::is_empty);
        if let (Some(why), false) = (waiting, is_last) {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// Applies one object. Returns why it is not ready, if it is not.
async fn one(
    engine: &Engine,
    ctx: &RendererContext,
    input: &Input,
    kind: &KindInfo,
    key: &Key,
    wanted: &Wanted,
) -> Result<Option<String>> {
    let owned = &engine.owned;
    let mut body = wanted.object.clone();
    if let Some(namespace) = key.namespace() {
        body["metadata"]["namespace"] = namespace.into();
    }
    let there = match input.children.get(kind, key) {
        Some(child) => Some((**child).clone()),
        None => owned.get(ctx, kind, key).await?,
    };
    // What stays when the parent goes must not have it as its owner.
    let apply = async |body: Value| {
        if wanted.keep {
            owned.apply_marked(ctx, kind, body).await
        } else {
            owned.apply(ctx, kind, body).await
        }
    };
    let live = match there {
        None => apply(body).await?,
        Some(there) if is_going(&there) => {
            // Its end wakes the parent.
            return Ok(Some(format!("{kind} {key} is being deleted")));
        }
        Some(mut there) => {
            if wanted.adopt && !owned.owns(ctx, &there) {
                there = if wanted.keep {
                    owned.adopt_marked(ctx, kind, &there).await?
                } else {
                    owned.adopt(ctx, kind, &there).await?
                };
            }
            if wanted.method != Method::InPlace && !owned.owns(ctx, &there) {
                // Refused, with the reason.
                apply(body).await?
            } else if wanted.method == Method::OnDelete {
                there
            } else if wanted.method == Method::Recreate
                && !wanted.keep
                && owned.differs(ctx, kind, body.clone()).await?
            {
                owned
                    .delete(ctx, kind, &there, &Delete::background())
                    .await?;
                return Ok(Some(format!("{kind} {key} is being replaced")));
            } else {
                apply(body).await?
            }
        }
    };
    Ok(match &wanted.ready {
        Ready::ByKind => owned.not_ready(kind, &live),
        Ready::Exists => None,
        Ready::Conditions(checks) => {
            let missing = checks.iter().find(|check| !check.holds(&live));
            missing.map(|check| format!("{kind} {key} has no condition {}", check.kind))
        }
    })
}

/// Whether an object is being deleted.
pub(crate) fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}
