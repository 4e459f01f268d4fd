//! A rehearsal: an operator that does all it would do, and changes nothing.

use std::io;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, FinalizingReconciler, Operator, Result,
    handle::{Controlled, Delete},
};
use windlass_cluster::{TestCluster, hours};

use crate::stage::{map, secret, writes};

/// Makes a map per secret with its size in it, deletes what is called `old`, tells about it, and
/// has a cleanup.
struct Maker(Controlled<ConfigMap>);

impl FinalizingReconciler for Maker {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let name = secret.name_any();
        let size = secret.annotations().get("size").cloned();
        let size = size.unwrap_or_default();
        self.0.apply(ctx, map(&name, &[("size", &size)])).await?;
        for old in self.0.list(ctx).await? {
            if old.name_any() == "old" {
                self.0.delete(ctx, &old, Delete::background()).await?;
            }
        }
        ctx.event(windlass::Event::normal("Made", "a map"));
        Ok(Action::done())
    }

    async fn cleanup(&self, _: &Secret, _: &Context<Secret>) -> Result<Action> {
        Ok(Action::done())
    }
}

fn operator() -> Operator {
    let declare = |declare: &mut Declare<Secret>| Maker(declare.controls());
    let controller = Controller::of_existing().reconciler(declare);
    Operator::new("maker").controller(controller)
}

/// Where the log goes.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn told(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let told = text
            .lines()
            .filter_map(|line| line.split_once("dry run: would "));
        told.map(|(_, what)| what.to_owned()).collect()
    }
}

fn listen() -> (Lines, tracing::subscriber::DefaultGuard) {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    (lines, tracing::subscriber::set_default(subscriber))
}

#[windlass_cluster::test]
async fn nothing_is_stored_and_the_log_says_what_would_be(cluster: TestCluster) {
    let (lines, _guard) = listen();
    let operator = operator();
    let running = cluster.start_dry(&operator).await;
    let before = cluster.create(secret("one")).await;
    cluster.settle().await;
    assert!(cluster.find::<ConfigMap>("one").await.is_none());
    assert_eq!(cluster.get::<Secret>("one").await.metadata, before.metadata);
    assert!(cluster.list::<Event>().await.is_empty());
    // It asked, and the server judged: as its own ServiceAccount, with its own rights.
    assert_eq!(
        writes(&cluster, "maker"),
        [
            "patch secrets one in default",
            "patch configmaps one in default",
            "create events.events.k8s.io in default",
        ]
    );
    let told = lines.told();
    assert_eq!(
        told[0], r"patch secrets default/one: metadata.finalizers changes",
        "of a secret only the field is named"
    );
    assert_eq!(told[1], "apply configmaps default/one");
    assert!(
        told[2].starts_with("create events.events.k8s.io "),
        "{told:?}"
    );
    // A day later it has nothing to wait for, and has not asked again.
    cluster.advance(hours(24)).await;
    assert_eq!(writes(&cluster, "maker").len(), 3);
    running.stop().await;
}

#[windlass_cluster::test]
async fn what_is_there_is_compared_and_kept(cluster: TestCluster) {
    let mut one = secret("one");
    one.metadata.annotations = Some([("size".to_owned(), "1".to_owned())].into());
    let running = {
        let operator = operator();
        cluster.start(operator).await;
        let one = cluster.create(one).await;
        cluster.settle().await;
        let mut old = map("old", &[]);
        let owner = json!([{
            "apiVersion": "v1", "kind": "Secret", "name": "one", "controller": true,
            "uid": one.metadata.uid,
        }]);
        old.metadata.owner_references = serde_json::from_value(owner).unwrap();
        cluster.stop_operators();
        cluster.create(old).await;
        let patch = json!({"metadata": {"annotations": {"size": "2"}}});
        cluster.patch::<Secret>("one", patch).await;
        cluster.settle().await;
        let (lines, _guard) = listen();
        let operator = self::operator();
        let running = cluster.start_dry(&operator).await;
        let told = lines.told();
        assert_eq!(
            told[0], r#"apply configmaps default/one: data.size: "1" becomes "2""#,
            "{told:?}"
        );
        assert_eq!(told[1], "delete configmaps default/old", "{told:?}");
        // What was rehearsed is not taken for done.
        let patch = json!({"metadata": {"annotations": {"other": "x"}}});
        cluster.patch::<Secret>("one", patch).await;
        cluster.settle().await;
        let again = lines.told().into_iter().filter(|line| *line == told[0]);
        assert_eq!(again.count(), 2);
        running
    };
    let kept = cluster.get::<ConfigMap>("one").await;
    assert_eq!(kept.data.unwrap()["size"], "1");
    assert!(cluster.find::<ConfigMap>("old").await.is_some());
    drop(running);
}
