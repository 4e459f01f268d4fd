//! The long form: a reconciler with handles.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Operator, Reconciler, Result, Watched,
    handle::{Access, Owned, Reads, Verb, Writes},
};

use crate::fake::Fake;

const MAP: &str = "/api/v1/namespaces/n/configmaps/a";
const SECRET: &str = "/api/v1/namespaces/n/secrets/a";

/// Copies the secret of the same name into a secret `<name>-copy`, as often as asked.
struct Copier {
    copies: Owned<Secret>,
    secrets: Reads<Secret>,
    labels: Writes<ConfigMap>,
    runs: Arc<AtomicUsize>,
}

impl Reconciler for Copier {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Action> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        if map
            .data
            .as_ref()
            .is_some_and(|data| data.contains_key("panic"))
        {
            panic!("as asked");
        }
        if map.metadata.owner_references.is_some() {
            return Ok(Action::done());
        }
        let Some(secret) = self.secrets.get(ctx, ctx.key()).await? else {
            return Ok(Action::waiting("SecretNotFound", "no secret of that name"));
        };
        let mut copy = Secret {
            data: secret.data.clone(),
            ..Secret::default()
        };
        copy.metadata.name = Some(format!("{}-copy", ctx.key().name()));
        self.copies.apply(ctx, copy).await?;
        // Sees its own write, though the watch may be behind.
        assert_eq!(self.copies.list(ctx).await?.len(), 1);
        self.labels
            .patch(ctx, map, json!({"metadata": {"labels": {"copied": "yes"}}}))
            .await?;
        Ok(Action::done().requeue_after(Duration::from_hours(1)))
    }
}

fn operator(runs: &Arc<AtomicUsize>, access: &Access) -> Operator {
    let (runs, access) = (Arc::clone(runs), access.clone());
    Operator::new("copier").controller(Controller::of_existing().reconciler(
        move |declare: &mut Declare<ConfigMap>| Copier {
            copies: declare.owns(),
            secrets: declare.reads(Secret::referenced_by(|map: &ConfigMap| {
                map.metadata.name.clone()
            })),
            labels: declare.writes(access.clone()),
            runs: Arc::clone(&runs),
        },
    ))
}

fn patching() -> Access {
    Access::to([Verb::Patch])
}

#[tokio::test(start_paused = true)]
async fn waiting_is_not_an_error_and_ends_when_the_object_appears() {
    let (fake, runs) = (Fake::default(), Arc::default());
    fake.put(MAP, &json!({}));
    let _running = fake.start(&operator(&runs, &patching())).await;
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1, "waiting is not retried");
    fake.put(SECRET, &json!({"data": {"key": "dmFsdWU="}}));
    fake.settle().await;
    let copy = fake.get("/api/v1/namespaces/n/secrets/a-copy").unwrap();
    assert_eq!(copy["data"]["key"], "dmFsdWU=");
    assert_eq!(
        fake.get(MAP).unwrap()["metadata"]["labels"]["copied"],
        "yes"
    );
}

#[tokio::test(start_paused = true)]
async fn a_timer_wakes_without_keeping_the_cluster_unsettled() {
    let (fake, runs) = (Fake::default(), Arc::default());
    fake.put(MAP, &json!({}));
    fake.put(SECRET, &json!({"data": {}}));
    let _running = fake.start(&operator(&runs, &patching())).await;
    let before = runs.load(Ordering::SeqCst);
    fake.writes();
    tokio::time::sleep(Duration::from_mins(150)).await;
    assert_eq!(runs.load(Ordering::SeqCst) - before, 2);
    assert!(fake.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn reads_wait_for_own_writes_while_the_watch_is_behind() {
    let (fake, runs) = (Fake::default(), Arc::default());
    let _running = fake.start(&operator(&runs, &patching())).await;
    fake.put(SECRET, &json!({"data": {}}));
    fake.put(MAP, &json!({}));
    fake.hold_watches();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fake.writes(), ["PATCH /api/v1/namespaces/n/secrets/a-copy"]);
    fake.release_watches();
    fake.settle().await;
    assert_eq!(fake.writes(), ["PATCH /api/v1/namespaces/n/configmaps/a"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_contained_and_tried_again() {
    let (fake, runs) = (Fake::default(), Arc::default());
    fake.put(MAP, &json!({"data": {"panic": "yes"}}));
    let _running = {
        let operator = operator(&runs, &patching());
        let environment = windlass::testing::Environment::default();
        operator.start(fake.client(), environment)
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(runs.load(Ordering::SeqCst) > 3);
    fake.put(MAP, &json!({"data": {"panic": null}}));
    fake.put(SECRET, &json!({"data": {}}));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(fake.get("/api/v1/namespaces/n/secrets/a-copy").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_not_declared_is_refused_by_name() {
    let (fake, runs) = (Fake::default(), Arc::default());
    fake.put(MAP, &json!({}));
    fake.put(SECRET, &json!({"data": {}}));
    let _running = fake.start(&operator(&runs, &Access::none())).await;
    assert!(
        fake.get("/api/v1/namespaces/n/secrets/a-copy").is_some(),
        "it got as far as the write"
    );
    assert!(fake.get(MAP).unwrap()["metadata"]["labels"].is_null());
    let copied = "PATCH /api/v1/namespaces/n/secrets/a-copy";
    assert_eq!(fake.writes(), [copied], "the request is not even sent");
}
