//! Reads see the operator's own writes, however late the watch is, and wait only when they must.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass::{
    Action, Context, Controller, Declare, Kind, Operator, Reconciler, Result,
    handle::{Controlled, Delete},
};
use windlass_cluster::{TestCluster, seconds};

use crate::stage::{Log, secret, writes};

/// Does to its one object, step by step, what its secret says; after every write it reads, in the
/// same reconcile and in the next one.
struct Scribe<T> {
    owned: Controlled<T>,
    make: fn(&str) -> Value,
    log: Log,
}

impl<T: Kind> Scribe<T> {
    async fn read(&self, ctx: &Context<Secret>) -> Result<String> {
        let found = self.owned.get(ctx, "mine").await?;
        let listed = self.owned.list(ctx).await?.len();
        assert_eq!(usize::from(found.is_some()), listed, "get and list agree");
        let found = found.filter(|object| object.meta().deletion_timestamp.is_none());
        let step = found.and_then(|object| object.annotations().get("step").cloned());
        Ok(step.unwrap_or_else(|| "nothing".to_owned()))
    }
}

impl<T: Kind> Reconciler for Scribe<T> {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        if secret.labels().contains_key("idle") {
            self.log.push("idle");
            return Ok(Action::done());
        }
        let before = self.read(ctx).await?;
        let step = secret
            .annotations()
            .get("step")
            .cloned()
            .unwrap_or_default();
        let object = |step: &str| -> Result<T> {
            serde_json::from_value((self.make)(step)).map_err(windlass::Error::other)
        };
        if before != step {
            match step.as_str() {
                "" => {}
                "nothing" => {
                    if let Some(found) = self.owned.get(ctx, "mine").await? {
                        self.owned.delete(ctx, &found, Delete::background()).await?;
                    }
                }
                "anew" => {
                    if let Some(found) = self.owned.get(ctx, "mine").await? {
                        self.owned.delete(ctx, &found, Delete::background()).await?;
                    }
                    assert_eq!(self.read(ctx).await?, "nothing");
                    self.owned.create(ctx, object(&step)?).await?;
                }
                step => {
                    self.owned.apply(ctx, object(step)?).await?;
                }
            }
        } else if step != "nothing" && step != "anew" {
            // What is there already is applied again: nothing is sent, nothing is waited for.
            self.owned.apply(ctx, object(&step)?).await?;
        }
        let after = self.read(ctx).await?;
        self.log.push(format!("{before} to {after}"));
        Ok(Action::done())
    }
}

fn operator<T: Kind>(make: fn(&str) -> Value, log: &Log) -> Operator {
    let log = log.clone();
    let declare = move |declare: &mut Declare<Secret>| Scribe::<T> {
        owned: declare.controls(),
        make,
        log: log.clone(),
    };
    let controller = Controller::of_existing().reconciler(declare);
    Operator::new("scribe").controller(controller)
}

fn waits_of(cluster: &TestCluster, resource: &str) -> f64 {
    let labels = format!("resource=\"{resource}\"");
    cluster.metric("scribe", "windlass_cache_waits_total", &labels)
}

/// Plays create, update, no-op, delete, create, delete and recreate, with the watch so late.
async fn play<T: Kind>(cluster: &TestCluster, resource: &str, make: fn(&str) -> Value, delay: u64) {
    let log = Log::default();
    cluster.start(operator::<T>(make, &log)).await;
    cluster.create(secret("one")).await;
    cluster.settle().await;
    assert_eq!(log.take(), ["nothing to nothing"]);
    cluster.delay_watch("scribe", resource, seconds(delay));
    let mut waits = waits_of(cluster, resource);
    let steps = [
        // What was, the step, and how many writes it takes.
        ("nothing", "1", 1_u8),
        ("1", "2", 1),
        ("2", "nothing", 1),
        ("nothing", "3", 1),
        ("3", "anew", 2),
    ];
    for (before, step, writes_wanted) in steps {
        let sent = writes(cluster, "scribe").len();
        let patch = json!({"metadata": {"annotations": {"step": step}}});
        cluster.patch::<Secret>("one", patch).await;
        cluster.settle().await;
        let lines = log.take();
        let done = format!("{step} to {step}");
        assert_eq!(lines.last().unwrap(), &done, "{delay} s: {lines:?}");
        // A read that gave up is no reconcile that saw the past: each starts from the last write.
        for line in &lines {
            assert!(
                *line == done || *line == format!("{before} to {step}"),
                "{lines:?}"
            );
        }
        let sent = writes(cluster, "scribe").split_off(sent);
        assert_eq!(
            sent.len(),
            usize::from(writes_wanted),
            "{delay} s: {sent:?}"
        );
        let now = waits_of(cluster, resource);
        // The read after each write waits. It gives up after ten seconds, and with it the reconcile;
        // then the next one waits before it begins.
        let waits_wanted = f64::from(writes_wanted) * if delay > 10 { 2.0 } else { 1.0 };
        assert!(
            (now - waits - waits_wanted).abs() < 0.5,
            "{step}, {delay} s: {} waits instead of {waits_wanted}",
            now - waits
        );
        waits = now;
    }
    // Nothing was written: nobody waits.
    cluster
        .patch::<Secret>("one", json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    let sent = writes(cluster, "scribe").len();
    cluster.settle().await;
    assert_eq!(log.take(), ["anew to anew"]);
    assert!(
        (waits_of(cluster, resource) - waits).abs() < 0.5,
        "nobody waited"
    );
    assert_eq!(writes(cluster, "scribe").len(), sent);
}

fn config_map(step: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "mine", "annotations": {"step": step}},
        "data": {"step": step},
    })
}

fn service(step: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "mine", "annotations": {"step": step}},
        "spec": {"selector": {"app": step}, "ports": [{"port": 80, "targetPort": "web"}]},
    })
}

fn deployment(step: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "mine", "annotations": {"step": step}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "main", "image": step}]},
            },
        },
    })
}

macro_rules! delays {
    ($($name:ident: $kind:ty, $resource:literal, $make:ident, $delay:literal;)*) => {$(
        #[windlass_cluster::test]
        async fn $name(cluster: TestCluster) {
            play::<$kind>(&cluster, $resource, $make, $delay).await;
        }
    )*};
}

delays! {
    config_maps_one_second_late: ConfigMap, "configmaps", config_map, 1;
    config_maps_ten_seconds_late: ConfigMap, "configmaps", config_map, 10;
    config_maps_half_a_minute_late: ConfigMap, "configmaps", config_map, 30;
    services_one_second_late: Service, "services", service, 1;
    services_ten_seconds_late: Service, "services", service, 10;
    services_half_a_minute_late: Service, "services", service, 30;
    deployments_one_second_late: Deployment, "deployments.apps", deployment, 1;
    deployments_ten_seconds_late: Deployment, "deployments.apps", deployment, 10;
    deployments_half_a_minute_late: Deployment, "deployments.apps", deployment, 30;
}

#[windlass_cluster::test]
async fn a_key_that_waits_for_its_write_takes_nobodys_place(cluster: TestCluster) {
    let log = Log::default();
    let told = log.clone();
    let declare = move |declare: &mut Declare<Secret>| Scribe::<ConfigMap> {
        owned: declare.controls(),
        make: config_map,
        log: told.clone(),
    };
    // One worker for all.
    let controller = Controller::of_existing().concurrency(1).reconciler(declare);
    cluster
        .start(Operator::new("scribe").controller(controller))
        .await;
    cluster.create(secret("one")).await;
    cluster.settle().await;
    cluster.delay_watch("scribe", "configmaps", seconds(30));
    let patch = json!({"metadata": {"annotations": {"step": "1"}}});
    cluster.patch::<Secret>("one", patch.clone()).await;
    // The read in the same reconcile waits ten seconds and gives up; then the worker is free.
    tokio::time::sleep(seconds(12)).await;
    log.take();
    for name in ["two", "three", "four"] {
        let mut idle = secret(name);
        idle.metadata.labels = Some([("idle".to_owned(), "yes".to_owned())].into());
        cluster.create(idle).await;
    }
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(
        log.take(),
        ["idle"; 3],
        "the others do not wait for the slow one"
    );
    cluster.settle().await;
    assert_eq!(log.distinct(), ["1 to 1"]);
}
