//! Failures: the operator recovers from each, and one bad object never delays the others.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Error, Operator, Reconciler, Result,
    handle::{Controlled, Owned},
};
use windlass_cluster::{Failure, TestCluster, minutes, seconds};

use crate::stage::{Log, map, secret, writes};

/// Makes a `ConfigMap` for each secret, except for what its label asks it to do instead.
struct Worker {
    maps: Owned<ConfigMap>,
    log: Log,
}

impl Reconciler for Worker {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let name = secret.name_any();
        self.log.push(name.clone());
        match secret.labels().get("do").map(String::as_str) {
            Some("panic") => panic!("as asked"),
            Some("hang") => std::future::pending().await,
            Some("fail") => return Err(Error::other("as asked")),
            Some("refuse") => return Err(Error::terminal("as asked")),
            _ => {}
        }
        self.maps.apply(ctx, map(&name, &[("of", &name)])).await?;
        Ok(Action::done())
    }
}

fn worker(log: &Log) -> Operator {
    let log = log.clone();
    let declare = move |declare: &mut Declare<Secret>| Worker {
        maps: declare.owns(),
        log: log.clone(),
    };
    // Two workers, so that one bad object could take half of them.
    let controller = Controller::of_existing().concurrency(2).reconciler(declare);
    Operator::new("worker").controller(controller)
}

fn bad(what: &str) -> Secret {
    let mut secret = secret("bad");
    secret.metadata.labels = Some([("do".to_owned(), what.to_owned())].into());
    secret
}

async fn made(cluster: &TestCluster, name: &str) -> bool {
    cluster.find::<ConfigMap>(name).await.is_some()
}

fn metric(cluster: &TestCluster, name: &str) -> f64 {
    cluster.metric("worker", name, "controller=\"secret\"")
}

/// One bad object, good ones beside it; then the bad one is mended.
async fn one_bad(cluster: &TestCluster, what: &str) -> (usize, f64) {
    let log = Log::default();
    cluster.start(worker(&log)).await;
    cluster.create(bad(what)).await;
    tokio::time::sleep(seconds(1)).await;
    for name in ["one", "two", "three"] {
        cluster.create(secret(name)).await;
        tokio::time::sleep(seconds(1)).await;
        assert!(
            made(cluster, name).await,
            "{name} waits for the one that does {what}"
        );
    }
    tokio::time::sleep(minutes(5)).await;
    let tries = log.take().iter().filter(|name| *name == "bad").count();
    let errors = metric(cluster, "controller_runtime_reconcile_errors_total");
    cluster
        .patch::<Secret>("bad", json!({"metadata": {"labels": {"do": null}}}))
        .await;
    cluster.advance(minutes(2)).await;
    assert!(made(cluster, "bad").await, "mended, it is made at once");
    (tries, errors)
}

#[windlass_cluster::test]
async fn a_panic_is_contained(cluster: TestCluster) {
    let (tries, errors) = one_bad(&cluster, "panic").await;
    assert!(
        (10..30).contains(&tries),
        "{tries} tries: with backoff, without end"
    );
    assert!(errors >= 10.0);
    assert!(metric(&cluster, "controller_runtime_reconcile_panics_total") >= 10.0);
}

#[windlass_cluster::test]
async fn a_hanging_reconcile_is_ended(cluster: TestCluster) {
    let (tries, errors) = one_bad(&cluster, "hang").await;
    assert!((4..7).contains(&tries), "{tries} tries of a minute each");
    assert!(errors >= 4.0);
    assert!(metric(&cluster, "controller_runtime_reconcile_timeouts_total") >= 4.0);
}

#[windlass_cluster::test]
async fn an_error_is_tried_again_with_backoff(cluster: TestCluster) {
    let (tries, errors) = one_bad(&cluster, "fail").await;
    assert!((10..30).contains(&tries), "{tries}");
    assert!(errors >= 10.0);
}

#[windlass_cluster::test]
async fn a_terminal_error_waits_for_a_change(cluster: TestCluster) {
    let (tries, _) = one_bad(&cluster, "refuse").await;
    assert_eq!(tries, 1);
    let terminal = metric(
        &cluster,
        "controller_runtime_terminal_reconcile_errors_total",
    );
    assert!((terminal - 1.0).abs() < 0.1, "{terminal}");
}

/// Something goes on for a while; what is asked for meanwhile is done afterwards, once.
async fn storm(cluster: &TestCluster, begin: impl FnOnce(&TestCluster), lasts: u64) {
    let log = Log::default();
    cluster.start(worker(&log)).await;
    cluster.create(secret("before")).await;
    cluster.settle().await;
    begin(cluster);
    tokio::time::sleep(seconds(lasts)).await;
    for name in ["one", "two", "three"] {
        cluster.create(secret(name)).await;
    }
    cluster.advance(minutes(2)).await;
    for name in ["before", "one", "two", "three"] {
        assert!(made(cluster, name).await, "{name} is missing");
    }
    let good = cluster.requests_of("worker");
    let good = good
        .iter()
        .filter(|one| one.verb.writes() && one.code < 300);
    assert_eq!(good.count(), 4, "each is made once");
    // And everything still works.
    cluster.delete::<ConfigMap>("one").await;
    cluster.advance(minutes(1)).await;
    assert!(made(cluster, "one").await);
}

#[windlass_cluster::test]
async fn an_api_server_that_is_gone_for_a_while(cluster: TestCluster) {
    storm(&cluster, |cluster| cluster.interrupt(seconds(30)), 31).await;
}

#[windlass_cluster::test]
async fn a_storm_of_429(cluster: TestCluster) {
    let failure = Failure::with(429).by("worker").lasting(seconds(60));
    storm(&cluster, |cluster| cluster.fail(failure), 5).await;
}

#[windlass_cluster::test]
async fn a_storm_of_500(cluster: TestCluster) {
    let failure = Failure::with(500).by("worker").lasting(seconds(60));
    let begin = |cluster: &TestCluster| {
        cluster.fail(failure);
        cluster.break_watches();
    };
    storm(&cluster, begin, 5).await;
}

#[windlass_cluster::test]
async fn slow_watches(cluster: TestCluster) {
    let begin = |cluster: &TestCluster| {
        cluster.delay_watch("worker", "configmaps", seconds(30));
        cluster.delay_watch("worker", "secrets", seconds(20));
    };
    storm(&cluster, begin, 5).await;
}

#[windlass_cluster::test]
async fn writes_that_fail_for_one_object_only(cluster: TestCluster) {
    let log = Log::default();
    cluster.start(worker(&log)).await;
    cluster.fail(
        Failure::with(500)
            .by("worker")
            .on("configmaps")
            .writes()
            .times(8),
    );
    cluster.create(secret("one")).await;
    cluster.advance(minutes(1)).await;
    assert!(made(&cluster, "one").await);
    let sent = writes(&cluster, "worker");
    assert_eq!(
        sent.iter()
            .filter(|one| one.contains("configmaps one"))
            .count(),
        9
    );
}

/// Wants a value; somebody else wants another.
struct Stubborn {
    maps: Controlled<ConfigMap>,
    value: &'static str,
}

impl Reconciler for Stubborn {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        if secret.name_any() != "one" {
            return Ok(Action::done());
        }
        let Some(found) = self.maps.get(ctx, "fought-over").await? else {
            self.maps
                .apply(ctx, map("fought-over", &[("value", self.value)]))
                .await?;
            return Ok(Action::done());
        };
        let patch = json!({"data": {"value": self.value}});
        self.maps.patch(ctx, &found, patch).await?;
        Ok(Action::done())
    }
}

fn stubborn(name: &'static str, value: &'static str) -> Operator {
    let declare = move |declare: &mut Declare<Secret>| Stubborn {
        maps: declare.controls(),
        value,
    };
    Operator::new(name).controller(Controller::of_existing().reconciler(declare))
}

#[windlass_cluster::test]
async fn a_loop_that_writes_the_same_again_and_again_is_reported_by_name(cluster: TestCluster) {
    let operator = stubborn("left", "left");
    let running = operator.start(cluster.client(), windlass::testing::Environment::default());
    cluster.create(secret("one")).await;
    tokio::time::sleep(seconds(1)).await;
    for _ in 0..5 {
        // Somebody else wants another value, and does not give in either.
        let patch = json!({"data": {"value": "right"}});
        cluster.patch::<ConfigMap>("fought-over", patch).await;
        tokio::time::sleep(seconds(1)).await;
    }
    let text = operator.metrics().text();
    let series = "windlass_write_loops_total{controller=\"secret\",resource=\"configmaps\"} 1";
    assert!(text.contains(series), "{text}");
    let debug = running.debug().value();
    let told = &debug["writeLoops"][0];
    assert_eq!(told["writes"], "configmaps default/fought-over", "{debug}");
    assert_eq!(told["controller"], "secret");
    let events = cluster.list::<Event>().await;
    let event = events
        .iter()
        .find(|event| event.reason.as_deref() == Some("WriteLoop"));
    let note = event.unwrap().note.clone().unwrap();
    assert!(
        note.starts_with("secret has written configmaps default/fought-over 5 times"),
        "{note}"
    );
}

/// Gives its status, and then fails.
struct Hasty;

impl Reconciler for Hasty {
    type Object = Job;

    async fn reconcile(&self, _: &Job, ctx: &Context<Job>) -> Result<Action> {
        ctx.write_status(JobStatus::default()).await?;
        Err(Error::other("as always"))
    }
}

#[derive(kube::CustomResource, Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[kube(
    group = "failure.example.com",
    version = "v1",
    kind = "Job",
    namespaced,
    status = "JobStatus"
)]
struct JobSpec {}

#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
struct JobStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

/// Each round used to say that all is well and then that it is not, and woke itself by that.
#[windlass_cluster::test]
async fn one_that_fails_after_giving_its_status_does_not_wake_itself(cluster: TestCluster) {
    let controller = Controller::of::<Job>().reconciler(|_: &mut Declare<Job>| Hasty);
    cluster
        .start(Operator::new("hasty").controller(controller))
        .await;
    cluster.create(Job::new("one", JobSpec {})).await;
    tokio::time::sleep(minutes(10)).await;
    let writes = cluster.requests_of("hasty");
    let writes = writes
        .iter()
        .filter(|request| request.resource.ends_with("/status"));
    assert_eq!(
        writes.count(),
        2,
        "available before anything was known, then degraded"
    );
}
