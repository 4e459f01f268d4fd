//! Killed between two writes.

use futures::FutureExt as _;
use serde_json::json;

use super::Done;
use crate::kit::{Ctx, claim, is_going, map, name_of, says};

/// 1: writes the new size into the status, then scales; scales only if the two differ.
pub(crate) fn size_noted_first<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (name, size) = (name_of(&web), &web["spec"]["size"]);
            let child = ctx.get("configmap", name).await?;
            let Some(child) = child else {
                ctx.create("configmap", map(&web, name, size)).await?;
                ctx.status(name, json!({ "size": size })).await?;
                continue;
            };
            let scaled = says(&child, size);
            if FIXED && !scaled || !FIXED && web["status"]["size"] != *size {
                if !FIXED {
                    ctx.status(name, json!({ "size": size })).await?;
                }
                ctx.patch(
                    "configmap",
                    name,
                    json!({ "data": { "size": size.to_string() } }),
                )
                .await?;
                if FIXED {
                    ctx.status(name, json!({ "size": size })).await?;
                }
            } else if FIXED && web["status"]["size"] != *size {
                ctx.status(name, json!({ "size": size })).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 2: the client's object is made only in the branch that made the peers'.
pub(crate) fn second_in_the_branch_of_the_first<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (peers, clients) = (
                format!("{}-peers", name_of(&web)),
                format!("{}-clients", name_of(&web)),
            );
            let size = &web["spec"]["size"];
            let is_new = ctx.get("configmap", &peers).await?.is_none();
            if is_new {
                ctx.create("configmap", map(&web, &peers, size)).await?;
            }
            if is_new || FIXED && ctx.get("configmap", &clients).await?.is_none() {
                ctx.ensure("configmap", map(&web, &clients, size)).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 3: deletes what stands for a pod, then changes its claim; one that is restarted in between finds
/// no pod, and skips the claim.
pub(crate) fn claim_after_its_pod<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (name, size) = (name_of(&web), web["spec"]["size"].to_string());
            let resize = json!({ "metadata": { "labels": { "size": size } } });
            let Some(held) = ctx.get("claim", name).await? else {
                ctx.create("claim", claim(&web, name)).await?;
                continue;
            };
            let pod = ctx.get("configmap", name).await?;
            if pod.as_ref().is_some_and(|pod| pod["data"]["size"] != *size) {
                ctx.delete("configmap", name).await?;
                if !FIXED {
                    ctx.patch("claim", name, resize.clone()).await?;
                }
                ctx.ensure("configmap", map(&web, name, &web["spec"]["size"]))
                    .await?;
            } else if pod.is_none() {
                ctx.ensure("configmap", map(&web, name, &web["spec"]["size"]))
                    .await?;
            }
            let is_first = web["metadata"]["generation"] == 1;
            if FIXED && !is_first && held["metadata"]["labels"]["size"] != *size {
                ctx.patch("claim", name, resize).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 4: the phase is written after the deletion; one that is restarted in between waits for a pod that is
/// gone.
pub(crate) fn phase_after_the_deletion<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (name, size) = (name_of(&web), &web["spec"]["size"]);
            let phase = web["status"]["phase"].as_str().unwrap_or_default();
            let child = ctx.get("configmap", name).await?;
            match (phase, child) {
                ("", _) | ("Rolling", None) => {
                    ctx.ensure("configmap", map(&web, name, size)).await?;
                    ctx.status(name, json!({ "phase": "Running" })).await?;
                }
                ("Running", Some(child)) if !says(&child, size) => {
                    if FIXED {
                        ctx.status(name, json!({ "phase": "Rolling" })).await?;
                        ctx.delete("configmap", name).await?;
                    } else {
                        ctx.delete("configmap", name).await?;
                        ctx.status(name, json!({ "phase": "Rolling" })).await?;
                    }
                }
                ("Rolling", Some(child)) if FIXED && !says(&child, size) => {
                    ctx.delete("configmap", name).await?;
                }
                ("Rolling", Some(_)) if FIXED => {
                    ctx.status(name, json!({ "phase": "Running" })).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }
    .boxed()
}

/// 5: the finalizer is added once what it stands for is made.
pub(crate) fn finalizer_after_the_resource<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let name = name_of(&web);
            // It stands for something outside of the cluster: nobody owns it.
            let bucket = format!("{name}-bucket");
            if is_going(&web) {
                ctx.delete("secret", &bucket).await?;
                ctx.release(&web).await?;
                continue;
            }
            if FIXED {
                ctx.hold(&web).await?;
            }
            if ctx.get("secret", &bucket).await?.is_none() {
                ctx.ensure("secret", json!({ "metadata": { "name": bucket } }))
                    .await?;
            }
            ctx.hold(&web).await?;
        }
        Ok(())
    }
    .boxed()
}

/// 6: the hash of the configuration is written before what is to be restarted for it is.
pub(crate) fn hash_before_the_restart<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (name, size) = (name_of(&web), web["spec"]["size"].to_string());
            let (config, pod) = (format!("{name}-config"), format!("{name}-pod"));
            let hash = json!({ "metadata": { "annotations": { "hash": size } } });
            let restart = json!({ "data": { "size": size } });
            let Some(written) = ctx.get("configmap", &config).await? else {
                ctx.ensure("configmap", map(&web, &pod, &web["spec"]["size"]))
                    .await?;
                if FIXED {
                    // It may be there since before a restart, and of another size.
                    ctx.patch("configmap", &pod, restart).await?;
                }
                let mut config = map(&web, &config, &json!(0));
                config["metadata"]["annotations"] = json!({ "hash": size });
                ctx.ensure("configmap", config).await?;
                continue;
            };
            if written["metadata"]["annotations"]["hash"] != *size {
                if FIXED {
                    ctx.patch("configmap", &pod, restart).await?;
                    ctx.patch("configmap", &config, hash).await?;
                } else {
                    ctx.patch("configmap", &config, hash).await?;
                    ctx.patch("configmap", &pod, restart).await?;
                }
            }
        }
        Ok(())
    }
    .boxed()
}

/// 7: a counter of revisions that only the process knows.
pub(crate) fn counter_in_memory<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let name = name_of(&web);
            let generation = web["metadata"]["generation"].as_i64().unwrap_or_default();
            let revision = if FIXED {
                generation
            } else {
                let known = ctx.remember("generation", generation);
                let count = ctx.remember("count", 0).unwrap_or_default();
                let count = count + i64::from(known != Some(generation));
                ctx.remember("count", count);
                count
            };
            let Some(child) = ctx.get("configmap", name).await? else {
                ctx.create("configmap", map(&web, name, &json!(revision)))
                    .await?;
                continue;
            };
            if !says(&child, &json!(revision)) {
                let patch = json!({ "data": { "size": revision.to_string() } });
                ctx.patch("configmap", name, patch).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 8: notes that it recovers, and takes that note for the sign that it has: two crashes.
pub(crate) fn recovery_noted_first<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (first, second) = (
                format!("{}-first", name_of(&web)),
                format!("{}-second", name_of(&web)),
            );
            let size = &web["spec"]["size"];
            let Some(found) = ctx.get("configmap", &first).await? else {
                ctx.create("configmap", map(&web, &first, size)).await?;
                ctx.ensure("configmap", map(&web, &second, size)).await?;
                continue;
            };
            let recovered = found["metadata"]["annotations"]["recovered"].is_string();
            let is_missing = ctx.get("configmap", &second).await?.is_none();
            if is_missing && (FIXED || !recovered) {
                let note = json!({ "metadata": { "annotations": { "recovered": "at last" } } });
                if !FIXED {
                    ctx.patch("configmap", &first, note).await?;
                }
                ctx.ensure("configmap", map(&web, &second, size)).await?;
            }
        }
        Ok(())
    }
    .boxed()
}
