//! Answers that are lost, late or refused, and leaders of before.

use futures::FutureExt as _;
use serde_json::json;

use super::Done;
use crate::kit::{Ctx, claim, is_going, is_held, map, name_of, owner, says};

/// 23: a create whose answer is lost is sent again; that it is there already is taken for fatal.
pub(crate) fn already_there_is_fatal<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (name, size) = (name_of(&web), &web["spec"]["size"]);
            if web["status"]["made"] == true {
                continue;
            }
            match ctx.create("configmap", map(&web, name, size)).await {
                Err(kube::Error::Api(status)) if status.code == 409 && FIXED => {}
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    ctx.status(name, json!({ "made": true, "failed": "it exists" }))
                        .await?;
                    continue;
                }
                other => other?,
            }
            ctx.status(name, json!({ "made": true })).await?;
        }
        Ok(())
    }
    .boxed()
}

/// 24: a conflict is swallowed, and the status says that all is done.
pub(crate) fn conflict_is_swallowed<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (name, size) = (name_of(&web), &web["spec"]["size"]);
            if web["status"]["size"] == *size {
                continue;
            }
            let written = match ctx.get("configmap", name).await? {
                None => ctx.create("configmap", map(&web, name, size)).await,
                Some(child) => {
                    let version = &child["metadata"]["resourceVersion"];
                    let patch = json!({
                        "metadata": { "resourceVersion": version },
                        "data": { "size": size.to_string() },
                    });
                    ctx.patch("configmap", name, patch).await
                }
            };
            match written {
                Err(kube::Error::Api(status)) if !FIXED && status.code == 409 => {}
                other => other?,
            }
            ctx.status(name, json!({ "size": size })).await?;
        }
        Ok(())
    }
    .boxed()
}

/// 25: a write of a leader of before names no version.
pub(crate) fn former_leader_writes<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (name, size) = (name_of(&web), &web["spec"]["size"]);
            let Some(child) = ctx.get("configmap", name).await? else {
                ctx.ensure("configmap", map(&web, name, size)).await?;
                continue;
            };
            if says(&child, size) {
                continue;
            }
            let mut patch = json!({ "data": { "size": size.to_string() } });
            if FIXED {
                patch["metadata"] =
                    json!({ "resourceVersion": child["metadata"]["resourceVersion"] });
            }
            ctx.patch("configmap", name, patch).await?;
        }
        Ok(())
    }
    .boxed()
}

/// 26: once its own finalizer is gone, a web that is being deleted is taken for any other.
pub(crate) fn children_after_the_finalizer<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let data = format!("{}-data", name_of(&web));
            let is_held = is_held(&web);
            if is_going(&web) && is_held {
                ctx.delete("claim", &data).await?;
                ctx.release(&web).await?;
                continue;
            }
            if is_going(&web) && FIXED {
                continue;
            }
            if !is_going(&web) {
                ctx.hold(&web).await?;
                // It takes a moment to end: deleted in the foreground, the web waits for it.
                let mut owner = owner(&web);
                owner["blockOwnerDeletion"] = true.into();
                let pod = json!({
                    "metadata": { "name": name_of(&web), "ownerReferences": [owner] },
                    "spec": { "containers": [{ "name": "main", "image": "web" }] },
                });
                if ctx.get("pod", name_of(&web)).await?.is_none() {
                    ctx.ensure("pod", pod).await?;
                }
            }
            if ctx.get("claim", &data).await?.is_none() {
                ctx.ensure("claim", claim(&web, &data)).await?;
            }
        }
        Ok(())
    }
    .boxed()
}
