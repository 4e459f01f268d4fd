//! The cache: what is watched, how often, and what survives which interruption.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, Service};
use kube::api::PostParams;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Operator, Reconciler, Result, Watched,
    handle::{Access, Index, Reads, Verb as Right, Watches},
    testing::Environment,
    watch::{Changed, Scope, Select},
};
use windlass_cluster::{Failure, TestCluster, Verb, minutes, seconds};

use crate::stage::{Log, count, gadget, gadget_kind, gadgets, install, map, secret, uninstall};

/// Reads every `ConfigMap` of its namespace, and says which.
struct Reader<K> {
    maps: Reads<ConfigMap>,
    log: Log,
    kind: std::marker::PhantomData<fn() -> K>,
}

impl<K: windlass::Kind> Reconciler for Reader<K> {
    type Object = K;

    async fn reconcile(&self, object: &K, ctx: &Context<K>) -> Result<Action> {
        let maps = self.maps.list(ctx, Select::own_namespace()).await?;
        let names: Vec<String> = maps.iter().map(|one| one.name_any()).collect();
        let kind = K::kind(&());
        self.log.push(format!(
            "{kind} {} sees {}",
            object.name_any(),
            names.join(" ")
        ));
        Ok(Action::done())
    }
}

fn reader<K: windlass::Kind>(log: &Log, scope: Scope) -> windlass::controller::AnyController {
    let log = log.clone();
    let declare = move |declare: &mut Declare<K>| Reader {
        maps: declare.reads(ConfigMap::triggering_all().scoped(scope.clone())),
        log: log.clone(),
        kind: std::marker::PhantomData,
    };
    Controller::of_existing::<K>().reconciler(declare).into()
}

#[windlass_cluster::test]
async fn one_watch_serves_every_controller(cluster: TestCluster) {
    let log = Log::default();
    let operator = Operator::new("readers")
        .controller(reader::<Secret>(&log, Scope::all()))
        .controller(reader::<Service>(&log, Scope::all()))
        .controller(reader::<ConfigMap>(&log, Scope::all()));
    cluster.start(operator).await;
    cluster.create(secret("one")).await;
    cluster.create(map("a", &[])).await;
    cluster.settle().await;
    assert_eq!(count(&cluster, "readers", Verb::Watch, "configmaps"), 1);
    assert_eq!(count(&cluster, "readers", Verb::List, "configmaps"), 0);
    let last = log.take();
    assert!(
        last.contains(&"Secret one sees a kube-root-ca.crt".to_owned()),
        "{last:?}"
    );
}

#[windlass_cluster::test]
async fn a_scope_of_two_namespaces_sees_these_and_no_third(cluster: TestCluster) {
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    for name in ["left", "right", "other"] {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        let created = namespaces.create(&PostParams::default(), &namespace).await;
        created.unwrap();
    }
    cluster.settle().await;
    let log = Log::default();
    let scope = Scope::all().namespace("left").namespace("right");
    let seen = log.clone();
    let watch = move |declare: &mut Declare<Secret>| {
        let seen = seen.clone();
        let reads = declare.reads(
            ConfigMap::handled_by(move |change: Changed<'_, ConfigMap>| {
                if let Changed::Added(map) = change {
                    seen.push(format!("{}/{}", map.namespace().unwrap(), map.name_any()));
                }
                Vec::new()
            })
            .scoped(scope.clone()),
        );
        Reader {
            maps: reads,
            log: Log::default(),
            kind: std::marker::PhantomData::<fn() -> Secret>,
        }
    };
    let operator = Operator::new("two").controller(Controller::of_existing().reconciler(watch));
    cluster.start(operator).await;
    log.take();
    for name in ["left", "right", "other", "default"] {
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), name);
        maps.create(&PostParams::default(), &map("m", &[]))
            .await
            .unwrap();
    }
    cluster.settle().await;
    assert_eq!(log.take(), ["left/m", "right/m"]);
    assert_eq!(count(&cluster, "two", Verb::Watch, "configmaps"), 2);
}

/// Says what happened to `ConfigMaps`, change by change.
fn witness(log: &Log) -> Operator {
    struct Witness;

    impl Reconciler for Witness {
        type Object = Secret;

        async fn reconcile(&self, _: &Secret, _: &Context<Secret>) -> Result<Action> {
            Ok(Action::done())
        }
    }

    let log = log.clone();
    let declare = move |declare: &mut Declare<Secret>| {
        let log = log.clone();
        let handler = move |change: Changed<'_, ConfigMap>| {
            let value = |map: &ConfigMap| {
                let data = map.data.as_ref().and_then(|data| data.get("value"));
                data.cloned().unwrap_or_default()
            };
            let line = match change {
                Changed::Added(new) => format!("+{} {}", new.name_any(), value(new)),
                Changed::Updated { old, new } => {
                    format!("{} {} to {}", new.name_any(), value(old), value(new))
                }
                Changed::Deleted(old) => format!("-{} {}", old.name_any(), value(old)),
            };
            log.push(line);
            Vec::new()
        };
        declare.reads(ConfigMap::handled_by(handler));
        Witness
    };
    Operator::new("witness").controller(Controller::of_existing().reconciler(declare))
}

/// Three things happen that the witness does not see, and one that undoes itself.
async fn happenings(cluster: &TestCluster) {
    cluster.delete::<ConfigMap>("gone").await;
    cluster
        .patch::<ConfigMap>("changed", json!({"data": {"value": "2"}}))
        .await;
    cluster.create(map("new", &[("value", "1")])).await;
    cluster.delete::<ConfigMap>("again").await;
    cluster.create(map("again", &[("value", "2")])).await;
}

async fn before(cluster: &TestCluster, log: &Log) {
    cluster.start(witness(log)).await;
    for name in ["gone", "changed", "same", "again"] {
        cluster.create(map(name, &[("value", "1")])).await;
    }
    cluster.settle().await;
    log.take();
}

fn sorted(log: &Log) -> Vec<String> {
    let mut lines = log.take();
    lines.sort_unstable();
    lines
}

const EXPECTED: [&str; 5] = [
    "+again 2",
    "+new 1",
    "-again 1",
    "-gone 1",
    "changed 1 to 2",
];

#[windlass_cluster::test]
async fn a_lost_connection_loses_and_repeats_nothing(cluster: TestCluster) {
    let log = Log::default();
    before(&cluster, &log).await;
    cluster.fail(Failure::with(503).by("witness").lasting(seconds(5)));
    cluster.break_watches();
    happenings(&cluster).await;
    assert_eq!(log.take(), [""; 0], "it knows nothing of it yet");
    cluster.advance(seconds(20)).await;
    assert_eq!(sorted(&log), EXPECTED);
    cluster.break_watches();
    cluster.advance(minutes(1)).await;
    assert_eq!(log.take(), [""; 0], "nothing is told twice");
}

/// Audit finding 15: one 404, from a load balancer or an API server that is just being upgraded,
/// used to empty the cache and report every object as deleted.
#[windlass_cluster::test]
async fn not_found_from_a_proxy_deletes_nothing(cluster: TestCluster) {
    let log = Log::default();
    before(&cluster, &log).await;
    for times in [1, 2, 20] {
        let hiccup = Failure::with(404).by("witness").on("configmaps");
        cluster.fail(hiccup.times(times));
        cluster.break_watches();
        cluster.advance(minutes(3)).await;
        assert_eq!(log.take(), [""; 0], "after {times} answers of 404");
    }
    happenings(&cluster).await;
    cluster.advance(seconds(20)).await;
    let lines = sorted(&log);
    assert_eq!(lines, EXPECTED, "and the watch goes on");
}

#[windlass_cluster::test]
async fn a_watch_that_is_too_old_starts_over_without_losing_or_repeating(cluster: TestCluster) {
    let log = Log::default();
    before(&cluster, &log).await;
    let watches = || count(&cluster, "witness", Verb::Watch, "configmaps");
    let begun = watches();
    cluster.fail(Failure::with(503).by("witness").lasting(seconds(5)));
    cluster.break_watches();
    happenings(&cluster).await;
    tokio::time::sleep(seconds(5)).await;
    cluster.fail(Failure::with(410).by("witness").on("configmaps").times(1));
    cluster.advance(seconds(20)).await;
    assert_eq!(sorted(&log), EXPECTED);
    let answers: Vec<u16> = cluster
        .requests_of("witness")
        .iter()
        .filter(|one| one.resource == "configmaps")
        .map(|one| one.code)
        .collect();
    assert!(answers.contains(&410), "{answers:?}");
    assert!(watches() > begun + 1);
}

#[windlass_cluster::test]
async fn a_server_that_does_not_stream_lists_is_asked_for_pages(cluster: TestCluster) {
    for number in 0..3 {
        cluster
            .create(map(&format!("m{number}"), &[("value", "1")]))
            .await;
    }
    cluster.fail(Failure::with(422).by("witness").on("configmaps").times(1));
    let log = Log::default();
    cluster.start(witness(&log)).await;
    assert_eq!(count(&cluster, "witness", Verb::List, "configmaps"), 1);
    assert_eq!(count(&cluster, "witness", Verb::List, "secrets"), 0);
    let seen = sorted(&log);
    for number in 0..3 {
        assert!(seen.contains(&format!("+m{number} 1")), "{seen:?}");
    }
    cluster.create(map("later", &[("value", "1")])).await;
    cluster.settle().await;
    assert_eq!(log.take(), ["+later 1"]);
}

/// Counts gadgets, whose kind it knows only by name.
struct Counter {
    gadgets: Reads<DynamicObject>,
    log: Log,
}

impl Reconciler for Counter {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let gadgets = self.gadgets.list(ctx, Select::own_namespace()).await?;
        let sizes: Vec<String> = gadgets
            .iter()
            .map(|gadget| gadget.data["spec"]["size"].to_string())
            .collect();
        self.log
            .push(format!("{} sees {}", secret.name_any(), sizes.join(" ")));
        Ok(Action::done())
    }
}

fn counter(log: &Log) -> Operator {
    let log = log.clone();
    let declare = move |declare: &mut Declare<Secret>| Counter {
        gadgets: declare.reads_kind(&gadget_kind(), DynamicObject::triggering_all()),
        log: log.clone(),
    };
    Operator::new("counter").controller(Controller::of_existing().reconciler(declare))
}

#[windlass_cluster::test]
async fn a_kind_may_come_and_go_and_come_back(cluster: TestCluster) {
    let log = Log::default();
    cluster.start(counter(&log)).await;
    cluster.create(secret("one")).await;
    cluster.advance(minutes(1)).await;
    assert_eq!(
        log.take(),
        [""; 0],
        "it waits for the kind, and the cluster settles"
    );
    let polls = count(&cluster, "counter", Verb::Watch, "gadgets.example.com");
    assert!(polls <= 15, "{polls} requests in a minute");
    for round in 1..=2 {
        install(&cluster).await;
        cluster.create(gadget("g", round)).await;
        cluster.advance(seconds(20)).await;
        assert_eq!(log.take().last().unwrap(), &format!("one sees {round}"));
        let api = gadgets(cluster.client());
        assert_eq!(
            api.list(&kube::api::ListParams::default())
                .await
                .unwrap()
                .items
                .len(),
            1
        );
        uninstall(&cluster).await;
        cluster.advance(minutes(6)).await;
        assert_eq!(log.take(), ["one sees "]);
    }
}

#[windlass_cluster::test]
async fn a_cache_that_does_not_fill_is_named(cluster: TestCluster) {
    let operator = counter(&Log::default());
    let running = operator.start(cluster.client(), Environment::default());
    let error = running.synced_within(seconds(3)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "timed out after 3 s waiting for caches to sync: gadgets.example.com (not served)"
    );
}

/// Starts a watch of gadgets while its secret asks for it.
struct Curious {
    watches: Watches,
    log: Log,
}

impl Reconciler for Curious {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let kind = self.watches.kind(ctx, "example.com/v1", "Gadget").await?;
        assert_eq!(kind, gadget_kind(), "as discovery tells");
        if secret.labels().contains_key("curious") {
            let gadgets = self.watches.start(ctx, &kind, &Scope::all()).await?;
            let gadgets = gadgets.list(ctx, Select::own_namespace()).await?;
            self.log
                .push(format!("{} sees {}", secret.name_any(), gadgets.len()));
        } else {
            self.watches.stop(ctx, &kind, &Scope::all());
        }
        Ok(Action::done())
    }
}

#[windlass_cluster::test]
async fn watches_start_and_stop_at_run_time(cluster: TestCluster) {
    install(&cluster).await;
    cluster.create(gadget("first", 1)).await;
    let log = Log::default();
    let told = log.clone();
    let declare = move |declare: &mut Declare<Secret>| Curious {
        watches: declare.watches([Access::resource("example.com", "gadgets", Right::READ)]),
        log: told.clone(),
    };
    let operator =
        Operator::new("curious").controller(Controller::of_existing().reconciler(declare));
    cluster.start(operator).await;
    cluster.create(secret("one")).await;
    cluster.create(secret("two")).await;
    cluster.settle().await;
    let watches = || count(&cluster, "curious", Verb::Watch, "gadgets.example.com");
    assert_eq!((watches(), log.take()), (0, vec![]));
    let curious = json!({"metadata": {"labels": {"curious": "yes"}}});
    for name in ["one", "two"] {
        cluster.patch::<Secret>(name, curious.clone()).await;
    }
    cluster.settle().await;
    assert_eq!(log.take(), ["one sees 1", "two sees 1"]);
    assert_eq!(watches(), 1, "both use the same");
    cluster.create(gadget("second", 2)).await;
    cluster.settle().await;
    assert_eq!(log.take(), ["one sees 2", "two sees 2"]);
    let bored = json!({"metadata": {"labels": {"curious": null}}});
    cluster.patch::<Secret>("one", bored).await;
    cluster.settle().await;
    cluster.create(gadget("third", 3)).await;
    cluster.settle().await;
    assert_eq!(log.take(), ["two sees 3"]);
    cluster.delete::<Secret>("two").await;
    cluster.settle().await;
    cluster.create(gadget("fourth", 4)).await;
    cluster.advance(minutes(20)).await;
    assert_eq!(log.take(), [""; 0]);
    assert_eq!(watches(), 1, "the watch ended with its last user");
}

/// Finds pods by the node they are on, and secrets by their metadata alone.
struct Finder {
    by_node: Index<Pod>,
    secrets: Reads<PartialObjectMeta<Secret>>,
    log: Log,
}

impl Reconciler for Finder {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Action> {
        let pods = self.by_node.find(ctx, "simulated").await?;
        let names: Vec<String> = pods.iter().map(|one| one.name_any()).collect();
        let secret = self.secrets.get(ctx, "hidden").await?;
        let labels = secret.map(|secret| secret.labels().len());
        self.log
            .push(format!("{} {labels:?} {}", map.name_any(), names.join(" ")));
        let nowhere = self.by_node.find(ctx, "nowhere").await?;
        assert!(nowhere.is_empty());
        Ok(Action::done())
    }
}

#[windlass_cluster::test]
async fn an_index_finds_and_metadata_is_enough(cluster: TestCluster) {
    let log = Log::default();
    let told = log.clone();
    let scope = Scope::all()
        .namespace("default")
        .labels(&[("app", "x")].into_iter().collect());
    let declare = move |declare: &mut Declare<ConfigMap>| {
        let pods = declare.reads(Pod::triggering_all().scoped(scope.clone()));
        let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        Finder {
            by_node: declare.index(&pods, node),
            secrets: declare.reads(
                PartialObjectMeta::<Secret>::referenced_by(|_: &ConfigMap| "hidden")
                    .metadata_only(),
            ),
            log: told.clone(),
        }
    };
    let only = Scope::all().field("metadata.name", "look");
    let finder = Controller::of_existing().scoped(only).reconciler(declare);
    cluster
        .start(Operator::new("finder").controller(finder))
        .await;
    cluster.create(map("look", &[])).await;
    let mut hidden = secret("hidden");
    hidden.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    hidden.string_data = Some([("password".to_owned(), "x".to_owned())].into());
    cluster.create(hidden).await;
    for (name, app) in [("p", "x"), ("q", "y")] {
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": app}},
            "spec": {"containers": [{"name": "main", "image": "a"}]},
        });
        cluster
            .create::<Pod>(serde_json::from_value(pod).unwrap())
            .await;
    }
    cluster.settle().await;
    let lines = log.take();
    assert_eq!(lines.last().unwrap(), "look Some(1) p", "{lines:?}");
}

#[windlass_cluster::test]
async fn a_transform_reduces_what_is_kept(cluster: TestCluster) {
    let log = Log::default();
    let operator = Operator::new("reduced")
        .controller(reader::<ConfigMap>(&log, Scope::all()))
        .transform::<ConfigMap>(|map| {
            map["metadata"]["name"] =
                format!("{}!", map["metadata"]["name"].as_str().unwrap()).into();
        });
    cluster.start(operator).await;
    assert_eq!(
        log.take().last().unwrap(),
        "ConfigMap kube-root-ca.crt! sees kube-root-ca.crt!"
    );
}

/// Audit finding 16: a panic in a transform used to end the watch of its kind, without a word.
#[windlass_cluster::test]
async fn panic_in_a_transform_keeps_the_object_and_the_watch(cluster: TestCluster) {
    let log = Log::default();
    let operator = Operator::new("panics")
        .controller(reader::<ConfigMap>(&log, Scope::all()))
        .transform::<ConfigMap>(|map| {
            assert!(map["metadata"]["name"] != "odd", "as asked");
            map["data"] = json!({});
        });
    cluster.start(operator).await;
    cluster.create(map("odd", &[])).await;
    cluster.settle().await;
    log.take();
    cluster.create(map("even", &[])).await;
    cluster.settle().await;
    let sees = "ConfigMap even sees even kube-root-ca.crt odd".to_owned();
    assert!(log.take().contains(&sees));
}

#[test]
fn a_watch_on_every_secret_is_warned_of() {
    let log = Log::default();
    let all = Operator::new("all").controller(reader::<Secret>(&log, Scope::all()));
    assert_eq!(
        all.warnings(),
        [
            "secret watches every secret of the cluster: the cache holds them all, and the role \
             may read them all; give the watch a scope"
        ]
    );
    let declare = |declare: &mut Declare<ConfigMap>| {
        let scope = Scope::all().namespace("mine");
        declare.reads(Secret::triggering_none().scoped(scope));
        Reader {
            maps: declare.reads(ConfigMap::triggering_none()),
            log: Log::default(),
            kind: std::marker::PhantomData::<fn() -> ConfigMap>,
        }
    };
    let some = Operator::new("some").controller(Controller::of_existing().reconciler(declare));
    assert_eq!(some.warnings(), [""; 0]);
}
