//! The operators, each beside its correct twin: `fixed` says which. What they have in common is one
//! kind, Web, of which they make objects of a size.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::kit::{Ctx, Seen, claim, is_going, map, name_of, says};

type Done = BoxFuture<'static, kube::Result<()>>;

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
            match ctx
                .status(name, json!({ "observedGeneration": generation }))
                .await
            {
                Err(kube::Error::Api(status)) if !FIXED && status.code == 409 => {}
                other => other?,
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
            let written = if ctx.get("configmap", name).await?.is_none() {
                ctx.create("configmap", map(&web, name, size)).await
            } else {
                let data: Value = json!({ "data": { "size": size.to_string() } });
                ctx.patch("configmap", name, data).await
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
