//! Operators that do not reconcile one thing after the other: one that leads by a lease, and one whose
//! writes are under way while it goes on.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, watcher};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::kit::{Kind, Lists, Reconcile, api, map, name_of, run, says, typed};

/// The lease of the operators that have one.
const LEASE: &str = "web-operator";
/// How often it is renewed; it is over after three times that.
const RENEWED: Duration = Duration::from_secs(5);

/// Runs an operator as long as it leads.
pub(crate) async fn elected(client: Client, kinds: &[Kind], lists: Lists, reconcile: Reconcile) {
    let leases = api(&client, "lease");
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": LEASE },
        "spec": { "holderIdentity": "operator", "leaseDurationSeconds": 15 } });
    let Ok(lease) = serde_json::from_value(lease) else {
        return;
    };
    let mine = loop {
        if let Ok(made) = leases.create(&PostParams::default(), &lease).await {
            break made;
        }
        // Whoever leads renews it; else it is taken away.
        let before = leases.get(LEASE).await.ok();
        sleep(RENEWED * 3).await;
        let now = leases.get(LEASE).await.ok();
        let version = |lease: Option<kube::api::DynamicObject>| lease?.metadata.resource_version;
        if version(before) == version(now) {
            let _ = leases
                .delete(LEASE, &kube::api::DeleteParams::default())
                .await;
        }
    };
    let uid = mine.metadata.uid;
    let mut renewals = 0;
    let leads = async {
        loop {
            sleep(RENEWED).await;
            renewals += 1;
            let patch = json!({ "metadata": { "uid": uid },
                "spec": { "leaseTransitions": renewals } });
            let patch = Patch::Merge(patch);
            if leases
                .patch(LEASE, &PatchParams::default(), &patch)
                .await
                .is_err()
            {
                return;
            }
        }
    };
    tokio::select! {
        () = leads => {}
        () = run(client.clone(), kinds, lists, reconcile) => {}
    }
}

/// 13: what the API server answers to a write goes into the cache, also over what is newer.
pub(crate) async fn answer_over_a_newer_event<const FIXED: bool>(client: Client) {
    let (webs, maps) = (api(&client, "web"), api(&client, "configmap"));
    let mut events = watcher(webs.clone(), watcher::Config::default()).boxed();
    let mut writes = FuturesUnordered::new();
    let mut cached: Option<Value> = None;
    let version = |web: &Value| -> u64 {
        let version = web["metadata"]["resourceVersion"].as_str();
        version
            .and_then(|text| text.parse().ok())
            .unwrap_or_default()
    };
    loop {
        let (seen, is_answer) = tokio::select! {
            event = events.next() => match event {
                Some(Ok(watcher::Event::Apply(web) | watcher::Event::InitApply(web))) => (typed(web), false),
                Some(Ok(watcher::Event::Delete(_))) => {
                    cached = None;
                    continue;
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) => {
                    sleep(Duration::from_secs(1)).await;
                    continue;
                }
                None => return,
            },
            Some(answer) = writes.next(), if !writes.is_empty() => if let Ok(web) = answer {
                (typed(web), true)
            } else {
                // Again, by what the cache has.
                sleep(Duration::from_secs(1)).await;
                let Some(web) = cached.clone() else { continue };
                (web, false)
            },
        };
        let is_old = cached
            .as_ref()
            .is_some_and(|known| version(known) > version(&seen));
        if is_answer && is_old && FIXED {
            continue;
        }
        let web = cached.insert(seen).clone();
        let (name, size) = (name_of(&web), &web["spec"]["size"]);
        let child = loop {
            // A reconcile that fails is tried again.
            match maps.get_opt(name).await {
                Ok(child) => break child.map(typed),
                Err(_) => sleep(Duration::from_secs(1)).await,
            }
        };
        let written = match child {
            None => match serde_json::from_value(map(&web, name, size)) {
                Ok(child) => maps.create(&PostParams::default(), &child).await.map(drop),
                Err(_) => return,
            },
            Some(child) if !says(&child, size) => {
                let patch = Patch::Merge(json!({ "data": { "size": size.to_string() } }));
                let patched = maps.patch(name, &PatchParams::default(), &patch).await;
                patched.map(drop)
            }
            Some(_) => Ok(()),
        };
        if written.is_err() || web["status"]["size"] != *size {
            let (webs, name) = (webs.clone(), name.to_owned());
            let patch = Patch::Merge(json!({ "status": { "size": size } }));
            writes.push(async move {
                webs.patch_status(&name, &PatchParams::default(), &patch)
                    .await
            });
        }
    }
}
