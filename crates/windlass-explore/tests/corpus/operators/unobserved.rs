//! What was never seen.

use futures::FutureExt as _;
use serde_json::json;

use super::Done;
use crate::kit::{Ctx, Seen, claim, is_going, map, name_of, says};

/// 18: the claim is deleted only when the pod is seen to be going.
pub(crate) fn claim_with_the_sight_of_its_pod<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        if let Seen::There("pod", pod) = &ctx.event
            && is_going(pod)
            && !FIXED
        {
            ctx.delete("claim", name_of(pod)).await?;
        }
        for web in ctx.webs() {
            let name = name_of(&web);
            if web["spec"]["size"] != 0 {
                if ctx.get("claim", name).await?.is_none() {
                    ctx.ensure("claim", claim(&web, name)).await?;
                }
                let pod = json!({
                    "metadata": { "name": name, "labels": { "web": name } },
                    "spec": { "containers": [{ "name": "main", "image": "web" }] },
                });
                if ctx.get("pod", name).await?.is_none() {
                    ctx.ensure("pod", pod).await?;
                }
                continue;
            }
            match ctx.get("pod", name).await? {
                Some(pod) if !is_going(&pod) => ctx.delete("pod", name).await?,
                None if FIXED && ctx.get("claim", name).await?.is_some() => {
                    ctx.delete("claim", name).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }
    .boxed()
}

/// 19: it never scales in, as far as its cache of the child goes: of 1, 3, 2 it may have seen 1 and 2.
pub(crate) fn guard_by_the_cache<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (name, size) = (name_of(&web), &web["spec"]["size"]);
            if ctx.get("configmap", name).await?.is_none() {
                ctx.ensure("configmap", map(&web, name, size)).await?;
                continue;
            }
            let Some(child) = ctx.cached("configmap", name) else {
                continue;
            };
            let known = child["data"]["size"].as_str().unwrap_or_default();
            let known: i64 = known.parse().unwrap_or_default();
            let grows = size.as_i64().unwrap_or_default() > known;
            // The twin can scale in.
            if grows || FIXED && !says(child, size) {
                let patch = json!({ "data": { "size": size.to_string() } });
                ctx.patch("configmap", name, patch).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 20: what is to be deleted with a web is deleted when the web is seen to be gone; there is no
/// finalizer.
pub(crate) fn cleans_up_on_the_event<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        if let Seen::Gone("web", web) = &ctx.event {
            ctx.delete("secret", name_of(web)).await?;
        }
        for web in ctx.webs() {
            let name = name_of(&web);
            if is_going(&web) {
                ctx.delete("secret", name).await?;
                let release = json!({ "metadata": { "finalizers": null } });
                match ctx.patch("web", name, release).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    other => other?,
                }
                continue;
            }
            if FIXED && web["metadata"]["finalizers"].is_null() {
                let finalizer = json!({ "metadata": { "finalizers": ["example.com/secret"] } });
                ctx.patch("web", name, finalizer).await?;
            }
            if ctx.get("secret", name).await?.is_none() {
                ctx.ensure("secret", json!({ "metadata": { "name": name } }))
                    .await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 21: what a list no longer has stays in the cache (see `Relist`), and what belongs to it stays, too.
pub(crate) fn trusts_its_cache(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let name = name_of(&web);
            if ctx.get("secret", name).await?.is_none() {
                let secret = json!({ "metadata": { "name": name, "labels": { "of": "web" } } });
                ctx.ensure("secret", secret).await?;
            }
        }
        for secret in ctx.list("secret", "of=web").await? {
            if ctx.cached("web", name_of(&secret)).is_none() {
                ctx.delete_this("secret", &secret).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 22: the finalizers of children are removed when the web is seen to be gone, and only then.
pub(crate) fn releases_children_on_the_event<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        let release = json!({ "metadata": { "finalizers": null } });
        if let Seen::Gone("web", web) = &ctx.event
            && ctx.get("configmap", name_of(web)).await?.is_some()
        {
            ctx.patch("configmap", name_of(web), release.clone())
                .await?;
        }
        if FIXED {
            let going = ctx.cache.iter().filter(|((kind, _), child)| {
                *kind == "configmap"
                    && is_going(child)
                    && !child["metadata"]["finalizers"].is_null()
            });
            for ((_, name), _) in going {
                match ctx.patch("configmap", name, release.clone()).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    other => other?,
                }
            }
        }
        for web in ctx.webs() {
            let mut child = map(&web, name_of(&web), &web["spec"]["size"]);
            child["metadata"]["finalizers"] = json!(["example.com/child"]);
            if ctx.get("configmap", name_of(&web)).await?.is_none() {
                ctx.ensure("configmap", child).await?;
            }
        }
        Ok(())
    }
    .boxed()
}
