//! An old sight of what there is.

use std::time::Duration;

use futures::FutureExt as _;
use serde_json::{Value, json};

use super::Done;
use crate::kit::{Ctx, claim, is_going, map, name_of};

/// 9: a web that is seen going has its claims deleted by label; an old sight of it hits the claims of
/// its successor.
pub(crate) fn claims_by_label<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let name = name_of(&web);
            if !is_going(&web) {
                if web["metadata"]["finalizers"].is_null() {
                    let finalizer = json!({ "metadata": { "finalizers": ["example.com/claims"] } });
                    ctx.patch("web", name, finalizer).await?;
                }
                if ctx.get("claim", &format!("{name}-data")).await?.is_none() {
                    ctx.ensure("claim", claim(&web, &format!("{name}-data")))
                        .await?;
                }
                continue;
            }
            let uid = web["metadata"]["uid"].as_str().unwrap_or_default();
            let selector = if FIXED {
                format!("of={uid}")
            } else {
                format!("web={name}")
            };
            for found in ctx.list("claim", &selector).await? {
                ctx.delete_this("claim", &found).await?;
            }
            // Of this very one: its successor keeps its own.
            let release = json!({ "metadata": { "uid": uid, "finalizers": null } });
            let found = ctx.get("web", name).await?.unwrap_or_default();
            if found["metadata"]["uid"] == uid {
                ctx.patch("web", name, release).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 10: an old sight of the size takes away what a later one has made.
pub(crate) fn scales_down_by_an_old_sight<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let name = name_of(&web);
            let size = web["spec"]["size"].as_u64().unwrap_or_default();
            for ordinal in 0..size {
                let data = format!("{name}-{ordinal}");
                if ctx.get("claim", &data).await?.is_none() {
                    ctx.ensure("claim", claim(&web, &data)).await?;
                }
            }
            let surplus = ctx.list("claim", &format!("web={name}")).await?;
            for found in surplus {
                let ordinal = name_of(&found).rsplit('-').next().unwrap_or_default();
                if ordinal.parse().is_ok_and(|ordinal: u64| ordinal < size) {
                    continue;
                }
                let fresh = ctx.get("web", name).await?.unwrap_or_default();
                if !FIXED || fresh["metadata"]["generation"] == web["metadata"]["generation"] {
                    ctx.delete_this("claim", &found).await?;
                }
            }
        }
        Ok(())
    }
    .boxed()
}

/// 11: children are counted in the cache, and their names are generated.
pub(crate) fn counted_in_the_cache<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let name = name_of(&web);
            let wanted = web["spec"]["size"].as_u64().unwrap_or_default();
            let there = ctx.cache.iter().filter(|((kind, _), child)| {
                let owner = &child["metadata"]["ownerReferences"][0]["uid"];
                *kind == "configmap" && *owner == web["metadata"]["uid"]
            });
            let there = there.count() as u64;
            for ordinal in 0..wanted {
                let mut child = map(&web, &format!("{name}-{ordinal}"), &json!(0));
                if FIXED {
                    ctx.ensure("configmap", child).await?;
                } else if ordinal >= there {
                    child["metadata"]["name"].take();
                    child["metadata"]["generateName"] = format!("{name}-").into();
                    ctx.create("configmap", child).await?;
                }
            }
        }
        Ok(())
    }
    .boxed()
}

/// 12: the owner is looked up through a second, slower watch, and taken for gone.
pub(crate) fn owner_by_a_slower_watch<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            if ctx.get("configmap", name_of(&web)).await?.is_none() {
                let child = map(&web, name_of(&web), &web["spec"]["size"]);
                ctx.ensure("configmap", child).await?;
            }
        }
        let children = ctx.cache.iter().filter(|((kind, _), _)| *kind == "secret");
        for ((_, name), child) in children {
            let Some(owner) = child["metadata"]["labels"]["of"].as_str() else {
                continue;
            };
            let is_gone = if FIXED {
                ctx.get("web", owner).await?.is_none()
            } else {
                ctx.cached("web", owner).is_none()
            };
            if is_gone {
                ctx.delete("secret", name).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 14: of several patches one names the version it means; after a conflict it gives up.
pub(crate) fn gives_up_after_a_conflict<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let (name, generation) = (name_of(&web), &web["metadata"]["generation"]);
            if web["status"]["observedGeneration"] == *generation {
                continue;
            }
            ctx.ensure("configmap", map(&web, name, &web["spec"]["size"]))
                .await?;
            let size = json!({ "data": { "size": web["spec"]["size"].to_string() } });
            ctx.patch("configmap", name, size).await?;
            let status = json!({ "observedGeneration": generation });
            match ctx.status_of(&web, status).await {
                Err(kube::Error::Api(status)) if !FIXED && status.code == 409 => {}
                other => other?,
            }
        }
        Ok(())
    }
    .boxed()
}

/// 15: what was created counts for five minutes though no watch has shown it; then it is counted
/// in the cache again.
pub(crate) fn expectations_expire<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let name = name_of(&web);
            let wanted = web["spec"]["size"].as_i64().unwrap_or_default();
            let is_child = |child: &Value| {
                child["metadata"]["ownerReferences"][0]["uid"] == web["metadata"]["uid"]
            };
            let cached = ctx.cache.iter();
            let cached =
                cached.filter(|((kind, _), child)| *kind == "configmap" && is_child(child));
            let mut there = i64::try_from(cached.count()).unwrap_or_default();
            if there >= ctx.remembered("expected").unwrap_or_default() {
                ctx.remember("expected", 0);
            } else if let Some(left) = ctx.until("expires") {
                ctx.again_in(left);
                continue;
            } else {
                ctx.remember("expected", 0);
            }
            if FIXED && there < wanted {
                // The cache may be late by more than that.
                let live = ctx.list("configmap", "").await?;
                let live = live.iter().filter(|child| is_child(child)).count();
                there = i64::try_from(live).unwrap_or_default();
            }
            if there < wanted {
                ctx.remember("expected", wanted);
                ctx.expire("expires", Duration::from_mins(5));
                ctx.again_in(Duration::from_mins(5));
            }
            for _ in there..wanted {
                let mut child = map(&web, "", &json!(0));
                child["metadata"]["name"].take();
                child["metadata"]["generateName"] = format!("{name}-").into();
                ctx.create("configmap", child).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 16: an old sight of `size: 0` deletes what is there again; it heals, and what was in it is lost.
pub(crate) fn switched_off_by_an_old_sight<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for web in ctx.webs() {
            let name = name_of(&web);
            if web["spec"]["size"] != 0 {
                if ctx.get("secret", name).await?.is_none() {
                    ctx.ensure("secret", json!({ "metadata": { "name": name } }))
                        .await?;
                }
                continue;
            }
            let fresh = ctx.get("web", name).await?.unwrap_or_default();
            if !FIXED || fresh["spec"]["size"] == 0 {
                ctx.delete("secret", name).await?;
            }
        }
        Ok(())
    }
    .boxed()
}

/// 17: of the Secrets made so far, the one that the cached status names is kept.
pub(crate) fn keeps_the_secret_of_an_old_status<const FIXED: bool>(ctx: Ctx) -> Done {
    async move {
        for mut web in ctx.webs() {
            let name = name_of(&web).to_owned();
            if FIXED {
                match ctx.get("web", &name).await? {
                    Some(fresh) => web = fresh,
                    None => continue,
                }
            }
            let generation = web["metadata"]["generation"].clone();
            let current = format!("{name}-g{generation}");
            if ctx.get("secret", &current).await?.is_none() {
                let labels = json!({ "of": name });
                let secret = json!({ "metadata": { "name": current, "labels": labels } });
                ctx.ensure("secret", secret).await?;
            }
            if web["status"]["generation"] != generation {
                let status = json!({ "generation": generation, "secret": current });
                ctx.status(&name, status).await?;
                continue;
            }
            for secret in ctx.list("secret", &format!("of={name}")).await? {
                if web["status"]["secret"] != name_of(&secret) {
                    ctx.delete_this("secret", &secret).await?;
                }
            }
        }
        Ok(())
    }
    .boxed()
}
