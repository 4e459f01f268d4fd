//! Deleting what is not wanted any more.

use windlass::{Result, handle::Delete};

use crate::{
    Entry, Input, RendererContext,
    apply::is_going,
    engine::{Engine, Plan},
};

/// Deletes the children that no stage holds. Called only when all stages are applied.
pub(crate) async fn prune(
    engine: &Engine,
    ctx: &RendererContext,
    input: &Input,
    plan: &Plan<'_>,
    known: &[Entry],
) -> Result<()> {
    for (kind, objects) in input.children.kinds() {
        for (key, child) in objects {
            let wanted = plan.contains_key(&(kind.clone(), key.clone()));
            let kept = known
                .iter()
                .any(|entry| entry.keep && entry.kind == *kind && entry.key == *key);
            if !wanted && !kept && !is_going(child) {
                engine
                    .owned
                    .delete(ctx, kind, child, &Delete::background())
                    .await?;
            }
        }
    }
    for entry in known.iter().rev() {
        if !plan.contains_key(&(entry.kind.clone(), entry.key.clone())) {
            delete(engine, ctx, entry).await?;
        }
    }
    Ok(())
}

/// Deletes everything that is recorded, the last that was made first. Returns what is still there.
///
/// What was made later may rest on what was made before, so an object is deleted when those after
/// it are gone.
pub(crate) async fn delete_all<'a>(
    engine: &Engine,
    ctx: &RendererContext,
    entries: &'a [Entry],
) -> Result<Option<&'a Entry>> {
    let mut left = None;
    for entry in entries.iter().rev() {
        if delete(engine, ctx, entry).await? {
            left = left.or(Some(entry));
        }
    }
    Ok(left)
}

/// Deletes a recorded object if it is there and belongs to the parent. Whether it was there.
async fn delete(engine: &Engine, ctx: &RendererContext, entry: &Entry) -> Result<bool> {
    if entry.keep {
        return Ok(false);
    }
    let found = engine.owned.get(ctx, &entry.kind, &entry.key).await?;
    let Some(found) = found.filter(|found| engine.owned.owns(ctx, found)) else {
        return Ok(false);
    };
    if !is_going(&found) {
        engine
            .owned
            .delete(ctx, &entry.kind, &found, &Delete::background())
            .await?;
    }
    Ok(true)
}
