//! Controllers: what wakes them, and in which order.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use serde_json::json;
use tokio::sync::broadcast;
use windlass::{
    Action, Context, Controller, Declare, Key, Kind, Operator, Reconciler, Result, Watched,
    watch::Predicate,
};
use windlass_cluster::{TestCluster, hours, minutes, seconds};

use crate::stage::{Gadget, Log, gadget, install, map, secret};

/// Says why it was called.
struct Listener<K> {
    log: Log,
    next: fn(&Context<K>) -> Action,
}

impl<K: Kind> Reconciler for Listener<K> {
    type Object = K;

    async fn reconcile(&self, object: &K, ctx: &Context<K>) -> Result<Action> {
        self.log
            .push(format!("{}: {}", object.name_any(), ctx.cause()));
        Ok((self.next)(ctx))
    }
}

fn settled<K>(_: &Context<K>) -> Action {
    Action::done()
}

#[windlass_cluster::test]
async fn predicates_choose_what_wakes(cluster: TestCluster) {
    install(&cluster).await;
    let log = Log::default();
    let told = log.clone();
    let declare = move |declare: &mut Declare<Gadget>| {
        let renamed = Predicate::labels_changed().or(Predicate::annotations_changed());
        declare.reads(ConfigMap::triggering_all().only(renamed));
        Listener {
            log: told.clone(),
            next: settled,
        }
    };
    let controller = Controller::of_existing::<Gadget>()
        .only(Predicate::generation_changed())
        .reconciler(declare);
    cluster
        .start(Operator::new("choosy").controller(controller))
        .await;
    cluster.create(gadget("g", 1)).await;
    cluster.create(map("m", &[("a", "1")])).await;
    cluster.settle().await;
    log.take();
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    cluster.patch::<Gadget>("g", label.clone()).await;
    cluster.settle().await;
    assert_eq!(log.take(), [""; 0], "its labels are not its generation");
    cluster
        .patch::<Gadget>("g", json!({"spec": {"size": 2}}))
        .await;
    cluster.settle().await;
    assert_eq!(log.take(), ["g: gadgets.example.com default/g changed"]);
    cluster
        .patch::<ConfigMap>("m", json!({"data": {"a": "2"}}))
        .await;
    cluster.settle().await;
    assert_eq!(log.take(), [""; 0]);
    cluster.patch::<ConfigMap>("m", label).await;
    cluster.settle().await;
    assert_eq!(log.take(), ["g: configmaps default/m changed"]);
}

#[windlass_cluster::test]
async fn something_outside_the_cluster_wakes_too(cluster: TestCluster) {
    let (sender, _) = broadcast::channel::<Key>(16);
    let source = sender.clone();
    let log = Log::default();
    let told = log.clone();
    let controller = Controller::of_existing::<Secret>()
        .source("telephone", move || {
            futures::stream::unfold(source.subscribe(), |mut calls| async move {
                Some((calls.recv().await.ok()?, calls))
            })
            .boxed()
        })
        .reconciler(move |_: &mut Declare<Secret>| Listener {
            log: told.clone(),
            next: settled,
        });
    cluster
        .start(Operator::new("called").controller(controller))
        .await;
    cluster.create(secret("one")).await;
    cluster.settle().await;
    log.take();
    for _ in 0..2 {
        sender.send(Key::namespaced("default", "one")).unwrap();
        cluster.settle().await;
        assert_eq!(log.take(), ["one: source telephone"]);
        cluster.restart_operators().await;
        log.take();
    }
}

#[windlass_cluster::test]
async fn a_resync_looks_at_everything_again(cluster: TestCluster) {
    let log = Log::default();
    let told = log.clone();
    let controller = Controller::of_existing::<Secret>()
        .resync(hours(1))
        .reconciler(move |_: &mut Declare<Secret>| Listener {
            log: told.clone(),
            next: settled,
        });
    cluster
        .start(Operator::new("again").controller(controller))
        .await;
    cluster.create(secret("one")).await;
    cluster.create(secret("two")).await;
    cluster.settle().await;
    log.take();
    cluster.advance(hours(2) + minutes(1)).await;
    assert_eq!(
        log.take(),
        ["one: resync", "two: resync", "one: resync", "two: resync"]
    );
}

#[windlass_cluster::test]
async fn a_reconcile_can_be_due_at_a_time(cluster: TestCluster) {
    fn at_three(ctx: &Context<Secret>) -> Action {
        let three: jiff::Timestamp = "2030-01-01T03:00:00Z".parse().unwrap();
        if ctx.clock().now() < three {
            Action::done().requeue_at(three)
        } else {
            Action::done()
        }
    }
    let log = Log::default();
    let told = log.clone();
    let controller =
        Controller::of_existing::<Secret>().reconciler(move |_: &mut Declare<Secret>| Listener {
            log: told.clone(),
            next: at_three,
        });
    cluster
        .start(Operator::new("punctual").controller(controller))
        .await;
    cluster.create(secret("one")).await;
    cluster.settle().await;
    assert_eq!(log.take().len(), 1);
    cluster.advance(minutes(179)).await;
    assert_eq!(log.take(), [""; 0]);
    cluster.advance(minutes(2)).await;
    assert_eq!(log.take(), ["one: timer"]);
    cluster.advance(hours(24)).await;
    assert_eq!(log.take(), [""; 0]);
}

/// Takes a second for each object, and says in which order.
struct Slow(Arc<Mutex<Vec<String>>>);

impl Reconciler for Slow {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, _: &Context<Secret>) -> Result<Action> {
        tokio::time::sleep(seconds(1)).await;
        self.0.lock().unwrap().push(secret.name_any());
        Ok(Action::done())
    }
}

#[windlass_cluster::test]
async fn a_change_goes_before_the_first_list(cluster: TestCluster) {
    for number in 0..20 {
        cluster.create(secret(&format!("old-{number:02}"))).await;
    }
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&order);
    let controller = Controller::of_existing::<Secret>()
        .concurrency(1)
        .reconciler(move |_: &mut Declare<Secret>| Slow(Arc::clone(&seen)));
    let operator = Operator::new("slow").controller(controller);
    let other = cluster.clone();
    let (started, ()) = tokio::join!(cluster.start(operator), async move {
        tokio::time::sleep(seconds(5)).await;
        other.create(secret("new")).await;
    });
    let () = started;
    let order = order.lock().unwrap();
    let place = order.iter().position(|name| name == "new").unwrap();
    assert!(place < 8, "{order:?}");
    assert_eq!(order.len(), 21);
}
