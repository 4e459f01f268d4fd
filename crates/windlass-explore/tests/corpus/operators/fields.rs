//! Changes of a web that are not followed, or not taken back.

use futures::FutureExt as _;
use serde_json::{Value, json};

use super::Done;
use crate::kit::{Ctx, is_going, map, name_of, owner};

/// 27: labels are added and never removed.
pub(crate) fn labels_are_only_added<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let name = name_of(&web);
            let wanted = web["spec"]["labels"].as_object().cloned();
            let wanted = wanted.unwrap_or_default();
            let Some(child) = ctx.get("configmap", name).await? else {
                let mut child = map(&web, name, &json!(0));
                child["metadata"]["labels"] = wanted.into();
                ctx.ensure("configmap", child).await?;
                continue;
            };
            let there = child["metadata"]["labels"].as_object().cloned();
            let there = there.unwrap_or_default();
            let mut patch = wanted.clone();
            if FIXED {
                let surplus = there.keys().filter(|key| !wanted.contains_key(*key));
                patch.extend(surplus.map(|key| (key.clone(), Value::Null)));
            }
            let differs = patch
                .iter()
                .any(|(key, value)| there.get(key).unwrap_or(&Value::Null) != value);
            if differs {
                let patch = json!({ "metadata": { "labels": patch } });
                ctx.patch("configmap", name, patch).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 28: what is switched off stays as it was.
pub(crate) fn switched_off_is_not_never_on<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (main, metrics) = (name_of(&web), format!("{}-metrics", name_of(&web)));
            if ctx.get("configmap", main).await?.is_none() {
                ctx.ensure("configmap", map(&web, main, &json!(0))).await?;
            }
            let is_there = ctx.get("configmap", &metrics).await?.is_some();
            if web["spec"]["metrics"]["enabled"] == true {
                if !is_there {
                    ctx.ensure("configmap", map(&web, &metrics, &json!(0)))
                        .await?;
                }
            } else if FIXED && is_there {
                ctx.delete("configmap", &metrics).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 29: acts only when the pod is ready: an image that cannot be pulled cannot be taken back.
pub(crate) fn acts_only_when_ready<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (name, image) = (name_of(&web), &web["spec"]["image"]);
            let Some(pod) = ctx.get("pod", name).await? else {
                let pod = json!({
                    "metadata": { "name": name, "ownerReferences": [owner(&web)] },
                    "spec": { "containers": [{ "name": "main", "image": image }] },
                });
                ctx.ensure("pod", pod).await?;
                continue;
            };
            let conditions = pod["status"]["conditions"].as_array();
            let is_ready = conditions
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
            let is_old = pod["spec"]["containers"][0]["image"] != *image;
            if is_old && !is_going(&pod) && (FIXED || is_ready) {
                ctx.delete("pod", name).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 30: a block of the spec that need not be there is taken for granted.
pub(crate) fn block_taken_for_granted<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let name = name_of(&web);
            let storage = web["spec"]["storage"]["size"].as_i64();
            let storage = if FIXED {
                storage.unwrap_or(1)
            } else {
                storage.expect("the storage has a size")
            };
            let wanted = json!(storage);
            match ctx.get("configmap", name).await? {
                None => {
                    ctx.ensure("configmap", map(&web, name, &wanted)).await?;
                }
                Some(child) if !crate::kit::says(&child, &wanted) => {
                    let patch = json!({ "data": { "size": wanted.to_string() } });
                    ctx.patch("configmap", name, patch).await?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
    .boxed()
}
