//! What handles do besides applying: live reads, changes that are tried again, deleting many.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Error, Operator, Reconciler, Result,
    handle::{Access, Controlled, Delete, Reads, Verb, Writes},
    watch::{Select, Selector},
};
use windlass_cluster::{Failure, TestCluster, Verb as Sent};

use crate::stage::{Log, count, map, secret, writes};

/// Does what its secret says.
struct Hand {
    owned: Controlled<Secret>,
    maps: Reads<ConfigMap>,
    writes: Writes<ConfigMap>,
    log: Log,
}

impl Reconciler for Hand {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        match secret.annotations().get("do").map(String::as_str) {
            Some("look") => {
                let one = self.maps.get(ctx, "shared").await?;
                let all = self.maps.list(ctx, Select::own_namespace()).await?;
                let red: Selector = [("colour", "red")].into_iter().collect();
                let red = self.maps.list(ctx, red).await?;
                let names: Vec<String> = red.iter().map(|one| one.name_any()).collect();
                self.log
                    .push(format!("{} {} {names:?}", one.is_some(), all.len()));
            }
            Some("modify") => {
                let changed = self.writes.modify(ctx, "shared", |map| {
                    let count = map.data.get_or_insert_default();
                    let count = count.entry("count".to_owned()).or_default();
                    *count = format!("{count}x");
                });
                let changed = changed.await?;
                let none = self.writes.modify(ctx, "none", |_| {}).await?;
                let same = self.writes.modify(ctx, "shared", |_| {}).await?;
                assert!(none.is_none() && same.is_some());
                let data = changed.and_then(|map| map.data).unwrap_or_default();
                self.log.push(format!("{:?}", data.get("count")));
            }
            Some("sweep") => {
                let red: Selector = [("colour", "red")].into_iter().collect();
                self.writes
                    .delete_all(ctx, &red, Delete::background())
                    .await?;
            }
            Some("own") => {
                for name in ["a", "b", "c"] {
                    let mut copy = crate::stage::secret(name);
                    copy.metadata.owner_references = Some(vec![]);
                    self.owned.apply(ctx, copy).await?;
                }
            }
            Some("disown") => {
                let keep = |one: &Secret| one.name_any() != "b";
                let deleted = self
                    .owned
                    .delete_all(ctx, keep, Delete::background())
                    .await?;
                self.log.push(format!("{deleted} deleted"));
            }
            Some("overreach") => {
                let refused = self.writes.create(ctx, &map("new", &[])).await;
                let Err(Error::NotDeclared { verb, resource, .. }) = refused else {
                    panic!("it may");
                };
                self.log.push(format!("{verb} {resource}"));
            }
            _ => {}
        }
        Ok(Action::done())
    }
}

async fn start(cluster: &TestCluster) -> Log {
    let log = Log::default();
    let told = log.clone();
    let declare = move |declare: &mut Declare<Secret>| Hand {
        owned: declare.controls(),
        maps: declare.reads_live(),
        writes: declare.writes(Access::to([
            Verb::Get,
            Verb::Update,
            Verb::DeleteCollection,
        ])),
        log: told.clone(),
    };
    let controller = Controller::of_existing().reconciler(declare);
    let operator = Operator::new("hand").controller(controller);
    cluster.start(operator).await;
    cluster.create(secret("one")).await;
    let mut red = map("red", &[]);
    red.metadata.labels = Some([("colour".to_owned(), "red".to_owned())].into());
    cluster.create(red).await;
    cluster.create(map("shared", &[])).await;
    cluster.settle().await;
    log
}

async fn tell(cluster: &TestCluster, what: &str) {
    let patch = json!({"metadata": {"annotations": {"do": what}}});
    cluster.patch::<Secret>("one", patch).await;
    cluster.settle().await;
}

#[windlass_cluster::test]
async fn a_kind_that_is_not_watched_is_read_by_requests(cluster: TestCluster) {
    let log = start(&cluster).await;
    tell(&cluster, "look").await;
    // The CA that every namespace has is there, too.
    assert_eq!(log.take(), [r#"true 3 ["red"]"#]);
    assert_eq!(count(&cluster, "hand", Sent::Watch, "configmaps"), 0);
    assert_eq!(count(&cluster, "hand", Sent::Get, "configmaps"), 1);
    assert_eq!(count(&cluster, "hand", Sent::List, "configmaps"), 2);
}

#[windlass_cluster::test]
async fn a_change_that_meets_a_conflict_begins_anew(cluster: TestCluster) {
    let log = start(&cluster).await;
    let conflict = Failure::with(409).by("hand").on("configmaps").writes();
    cluster.fail(conflict.times(2));
    tell(&cluster, "modify").await;
    assert_eq!(log.take(), [r#"Some("x")"#]);
    // Two that failed, and the third; what changes nothing is not sent.
    assert_eq!(count(&cluster, "hand", Sent::Update, "configmaps"), 3);
    let errors = "controller_runtime_reconcile_errors_total";
    assert!(cluster.metric("hand", errors, "").abs() < 0.5);
}

#[windlass_cluster::test]
async fn many_are_deleted_by_one_request(cluster: TestCluster) {
    start(&cluster).await;
    tell(&cluster, "sweep").await;
    assert!(cluster.find::<ConfigMap>("red").await.is_none());
    assert!(cluster.find::<ConfigMap>("shared").await.is_some());
    assert_eq!(
        writes(&cluster, "hand"),
        ["deletecollection configmaps in default"]
    );
}

#[windlass_cluster::test]
async fn what_is_owned_is_deleted_but_for_what_is_kept(cluster: TestCluster) {
    let log = start(&cluster).await;
    tell(&cluster, "own").await;
    assert_eq!(cluster.list::<Secret>().await.len(), 4);
    tell(&cluster, "disown").await;
    assert_eq!(log.take()[0], "2 deleted");
    let left = cluster.list::<Secret>().await;
    let left: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
    assert_eq!(left, ["b", "one"]);
}

#[windlass_cluster::test]
async fn what_was_not_declared_is_not_sent(cluster: TestCluster) {
    let log = start(&cluster).await;
    tell(&cluster, "overreach").await;
    assert_eq!(log.take(), ["create configmaps"]);
    assert!(writes(&cluster, "hand").is_empty());
}
