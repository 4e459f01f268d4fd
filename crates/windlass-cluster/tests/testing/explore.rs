//! What an exploration finds: small operators, each with one mistake, and what must not be found.

use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use serde_json::{Value, json};
use windlass::watch::Watched as _;
use windlass::{
    Action, Context, Controller, Declare, Operator, Reconciler, Result,
    handle::{Access, Controlled, Delete, Reads, Verb, Writes},
};
use windlass_cluster::{TestCluster, Wrong};

use crate::operators::{diligent, hasty, map, wish};

async fn one_wish(cluster: TestCluster) {
    cluster.create(wish("one")).await;
    cluster.settle().await;
}

#[windlass_cluster::test]
async fn operator_without_a_mistake_is_sound(cluster: TestCluster) {
    cluster.start(diligent()).await;
    let report = cluster
        .explore(|cluster| async move {
            cluster.create(wish("one")).await;
            cluster.settle().await;
            cluster.delete::<ConfigMap>("one-first").await;
            cluster.settle().await;
            cluster.delete::<Secret>("one").await;
            cluster.settle().await;
        })
        .await;
    report.expect_sound();
    assert!(report.runs > 20, "{report}");
    assert_eq!((report.left_out, report.failed), (0, 0), "{report}");
}

#[windlass_cluster::test]
async fn step_forgotten_after_a_crash_is_found_and_replayed(cluster: TestCluster) {
    cluster.start(hasty()).await;
    let report = cluster.explore(one_wish).await;
    let finding = report.findings.first().expect("a finding");
    assert_eq!(
        finding.plan,
        "kill-after hasty: create configmaps in default #1"
    );
    assert!(matches!(finding.wrong, Wrong::Differs(_)), "{finding}");
    assert!(finding.repeats, "{finding}");
    let again = cluster.explore(one_wish).replay(&finding.plan).await;
    assert_eq!((again.runs, again.failed), (1, 1), "{again}");
    assert_eq!(again.findings[0].wrong, finding.wrong);
}

#[windlass_cluster::test]
#[should_panic(expected = "replay  cluster.explore(scenario).replay(\"kill-after hasty: ")]
async fn failure_shows_the_call_that_replays_it(cluster: TestCluster) {
    cluster.start(hasty()).await;
    cluster.explore(one_wish).await.expect_sound();
}

/// Deletes the claim of a wish whose parent it does not see, and trusts a second watch in this.
struct Janitor {
    parents: Reads<ConfigMap>,
    claims: Writes<PersistentVolumeClaim>,
    done: Controlled<ConfigMap>,
}

impl Reconciler for Janitor {
    type Object = Secret;

    async fn reconcile(&self, _: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        if self.parents.get(ctx, "parent").await?.is_none() {
            self.claims
                .delete(ctx, &claim(), Delete::background())
                .await?;
        }
        self.done.apply(ctx, map(ctx, "done")).await?;
        Ok(Action::done())
    }
}

fn claim() -> PersistentVolumeClaim {
    let claim = json!({
        "metadata": { "name": "data", "namespace": "default" },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    serde_json::from_value(claim).unwrap()
}

fn configmap(name: &str, data: &Value) -> ConfigMap {
    let map = json!({ "metadata": { "name": name }, "data": data });
    serde_json::from_value(map).unwrap()
}

#[windlass_cluster::test]
async fn deletion_by_a_watch_that_lags_is_found(cluster: TestCluster) {
    let declare = |declare: &mut Declare<Secret>| Janitor {
        parents: declare.reads(ConfigMap::triggering_none()),
        claims: declare.writes(Access::to([Verb::Delete])),
        done: declare.controls(),
    };
    cluster
        .start(Operator::new("janitor").controller(Controller::of_existing().reconciler(declare)))
        .await;
    let scenario = |cluster: TestCluster| async move {
        cluster.create(claim()).await;
        cluster.create(configmap("parent", &json!({}))).await;
        cluster.create(wish("one")).await;
        cluster.settle().await;
    };
    let report = cluster.explore(scenario).await;
    let finding = report.findings.first().expect("a finding");
    assert_eq!(
        finding.plan,
        "hold-until-write janitor: ADDED configmaps parent in default #1"
    );
    let deleted = "persistentvolumeclaims data in default".to_owned();
    assert_eq!(finding.wrong, Wrong::Deleted(deleted), "{finding}");
}

/// Notes that it recovers, and takes that note for the sign that it has recovered.
struct Forgetful(Controlled<ConfigMap>);

impl Reconciler for Forgetful {
    type Object = Secret;

    async fn reconcile(&self, _: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let Some(first) = self.0.get(ctx, "one-first").await? else {
            self.0.create(ctx, map(ctx, "first")).await?;
            self.0.create(ctx, map(ctx, "second")).await?;
            return Ok(Action::done());
        };
        let recovered = first.data.is_some();
        if !recovered && self.0.get(ctx, "one-second").await?.is_none() {
            self.0
                .patch(ctx, &first, json!({ "data": { "recovered": "" } }))
                .await?;
            self.0.create(ctx, map(ctx, "second")).await?;
        }
        Ok(Action::done())
    }
}

#[windlass_cluster::test]
async fn mistake_that_takes_two_crashes_is_found(cluster: TestCluster) {
    cluster.do_not_compare(&["data"]);
    let declare = |declare: &mut Declare<Secret>| Forgetful(declare.controls());
    cluster
        .start(Operator::new("forgetful").controller(Controller::of_existing().reconciler(declare)))
        .await;
    let report = cluster.explore(one_wish).await;
    let plans = report.findings.iter().map(|finding| &*finding.plan);
    assert_eq!(
        plans.collect::<Vec<_>>(),
        ["kill-after forgetful: create configmaps in default #1; \
          kill-after forgetful: patch configmaps one-first in default #1"],
        "{report}"
    );
}

/// Ignores what the API server answers.
struct Careless(Controlled<ConfigMap>);

impl Reconciler for Careless {
    type Object = Secret;

    async fn reconcile(&self, _: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let _ = self.0.create(ctx, map(ctx, "first")).await;
        Ok(Action::done())
    }
}

#[windlass_cluster::test]
async fn answer_that_is_ignored_is_found(cluster: TestCluster) {
    let declare = |declare: &mut Declare<Secret>| Careless(declare.controls());
    cluster
        .start(Operator::new("careless").controller(Controller::of_existing().reconciler(declare)))
        .await;
    let report = cluster.explore(one_wish).await;
    let finding = report.findings.first().expect("a finding");
    assert!(
        finding
            .plan
            .starts_with("refuse-500 careless: create configmaps"),
        "{report}"
    );
}

#[windlass_cluster::test]
async fn scenario_that_ends_by_chance_is_not_judged(cluster: TestCluster) {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    cluster.start(diligent()).await;
    let report = cluster
        .explore(|cluster| async move {
            let run = RUNS.fetch_add(1, Ordering::Relaxed).to_string();
            cluster
                .create(configmap("run", &json!({ "run": run })))
                .await;
            cluster.create(wish("one")).await;
            cluster.settle().await;
        })
        .await;
    assert_eq!((report.runs, report.findings.len()), (0, 0), "{report}");
    let why = report.unsteady.expect("it is unsteady");
    assert!(
        why.starts_with("two undisturbed runs end differently"),
        "{why}"
    );
}

#[windlass_cluster::test]
async fn plan_that_cannot_be_read_is_not_judged(cluster: TestCluster) {
    cluster.start(diligent()).await;
    let report = cluster.explore(one_wish).replay("explode").await;
    let why = report.unsteady.as_deref().expect("it is unsteady");
    assert!(
        why.starts_with("cannot read the fault \"explode\""),
        "{why}"
    );
    assert!(!report.is_sound());
}

#[windlass_cluster::test]
#[should_panic(expected = "the operators write nothing in this scenario")]
async fn scenario_without_a_write_proves_nothing_to_the_explorer(cluster: TestCluster) {
    cluster.start(diligent()).await;
    let report = cluster
        .explore(|cluster| async move { cluster.settle().await })
        .await;
    report.expect_sound();
}
