//! Applying what one does not own, and what a timeout cancels.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use windlass::{
    Controller, Operator, Reconciler, Watched,
    handle::{Access, Reads, Verb, Writes},
    object,
    prelude::*,
};
use windlass_cluster::{TestCluster, Verb as Sent, minutes, seconds};

use crate::stage::{count, map, secret};

/// Keeps a `ConfigMap` that belongs to nobody.
struct Publisher {
    maps: Writes<ConfigMap>,
    _read: Reads<ConfigMap>,
}

impl Publisher {
    fn declare(declare: &mut Declare<Secret>) -> Self {
        Self {
            maps: declare.writes(Access::to([Verb::Create, Verb::Patch])),
            _read: declare.reads(ConfigMap::triggering_all()),
        }
    }
}

impl Reconciler for Publisher {
    type Object = Secret;

    async fn reconcile(&self, _: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let map = object!(ConfigMap { metadata: { name: "public" }, data: { "key": "value" } });
        self.maps.apply(ctx, &map).await?;
        Ok(Action::done())
    }
}

#[windlass_cluster::test]
async fn applied_object_that_is_not_owned_is_repaired_and_stays(cluster: TestCluster) {
    let controller = Controller::of_existing().reconciler(Publisher::declare);
    cluster
        .start(Operator::new("publisher").controller(controller))
        .await;
    cluster.create(secret("one")).await;
    cluster.settle().await;
    let applies = || count(&cluster, "publisher", Sent::Patch, "configmaps");
    let public = cluster.get::<ConfigMap>("public").await;
    assert_eq!(public.metadata.owner_references, None);
    assert_eq!(applies(), 1, "and its own event needs no second");

    cluster
        .patch::<ConfigMap>("public", json!({"data": {"key": "drifted", "more": "x"}}))
        .await;
    cluster.settle().await;
    let data = cluster.get::<ConfigMap>("public").await.data.unwrap();
    assert_eq!(
        (data["key"].as_str(), data["more"].as_str()),
        ("value", "x")
    );
    assert_eq!(applies(), 2);

    cluster.delete::<ConfigMap>("public").await;
    cluster.settle().await;
    assert!(
        cluster.find::<ConfigMap>("public").await.is_some(),
        "created again"
    );

    cluster.delete::<Secret>("one").await;
    cluster.settle().await;
    assert!(cluster.find::<ConfigMap>("public").await.is_some());
}

/// Writes, waits for ever the first time, and writes again.
struct Slow {
    maps: Writes<ConfigMap>,
    attempts: Arc<AtomicU32>,
}

impl Reconciler for Slow {
    type Object = Secret;

    async fn reconcile(&self, _: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        self.maps.apply(ctx, &map("before", &[])).await?;
        if attempt == 0 {
            std::future::pending::<()>().await;
            unreachable!("the reconcile is cancelled where it waits");
        }
        self.maps.apply(ctx, &map("after", &[])).await?;
        Ok(Action::done())
    }
}

#[windlass_cluster::test]
async fn timeout_cancels_at_the_await_and_the_next_reconcile_starts_over(cluster: TestCluster) {
    let attempts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&attempts);
    let declare = move |declare: &mut Declare<Secret>| Slow {
        maps: declare.writes(Access::to([Verb::Create, Verb::Patch])),
        attempts: Arc::clone(&counted),
    };
    let controller = Controller::of_existing()
        .reconciler(declare)
        .timeout(seconds(30));
    cluster
        .start(Operator::new("slow").controller(controller))
        .await;
    cluster.create(secret("one")).await;
    // Not until it has settled: it has not, while it waits.
    tokio::time::sleep(seconds(20)).await;
    assert!(cluster.find::<ConfigMap>("before").await.is_some());
    assert!(cluster.find::<ConfigMap>("after").await.is_none());
    cluster.advance(minutes(2)).await;
    assert!(cluster.find::<ConfigMap>("after").await.is_some());
    assert_eq!(attempts.load(Ordering::Relaxed), 2);
    let timeouts = "controller_runtime_reconcile_timeouts_total";
    assert!((cluster.metric("slow", timeouts, "secret") - 1.0).abs() < f64::EPSILON);
}
