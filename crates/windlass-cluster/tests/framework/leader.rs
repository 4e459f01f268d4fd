//! Leader election: of several replicas one writes, whatever happens to it.

use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt};
use windlass::{Action, Context, Controller, Declare, Operator, Reconciler, Result, handle::Owned};
use windlass_cluster::{Failure, Replica, TestCluster, minutes, seconds};

use crate::stage::{Log, map, secret, writes};

/// Makes a `ConfigMap` for each secret, and says who did.
struct Maker {
    name: &'static str,
    maps: Owned<ConfigMap>,
    log: Log,
}

impl Reconciler for Maker {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let name = secret.name_any();
        self.maps.apply(ctx, map(&name, &[("of", &name)])).await?;
        self.log.push(format!("{} made {name}", self.name));
        Ok(Action::done())
    }
}

fn operator(name: &'static str, log: &Log) -> Operator {
    let log = log.clone();
    let declare = move |declare: &mut Declare<Secret>| Maker {
        name,
        maps: declare.owns(),
        log: log.clone(),
    };
    Operator::new("maker").controller(Controller::of_existing().reconciler(declare))
}

async fn start(cluster: &TestCluster, name: &'static str, log: &Log) -> Replica {
    let none = SignedDuration::ZERO;
    cluster
        .start_replica(&operator(name, log), name, none)
        .await
}

async fn holder(cluster: &TestCluster) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "maker-system");
    leases.get("maker").await.unwrap().spec?.holder_identity
}

/// Waits until this one leads; answers how long that took.
async fn until_leads(replica: &Replica) -> std::time::Duration {
    let begun = tokio::time::Instant::now();
    while !replica.leads() {
        assert!(begun.elapsed() < minutes(5), "it never leads");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    begun.elapsed()
}

#[windlass_cluster::test]
async fn of_three_one_writes(cluster: TestCluster) {
    let log = Log::default();
    let replicas = [
        start(&cluster, "a", &log).await,
        start(&cluster, "b", &log).await,
        start(&cluster, "c", &log).await,
    ];
    cluster.create(secret("one")).await;
    cluster.advance(minutes(10)).await;
    assert_eq!(log.distinct(), ["a made one"]);
    assert_eq!(
        replicas.each_ref().map(Replica::leads),
        [true, false, false]
    );
    assert_eq!(holder(&cluster).await.as_deref(), Some("a"));
    // Idle, it sends renewals and watches, and the others look at the lease.
    let requests = cluster.requests_of("maker");
    let others = requests
        .iter()
        .filter(|one| one.verb.writes() && one.resource != "leases.coordination.k8s.io");
    assert_eq!(others.count(), 1, "one ConfigMap");
    let renewals = requests
        .iter()
        .filter(|one| one.verb.writes() && one.resource == "leases.coordination.k8s.io");
    let renewals = renewals.count();
    assert!((290..=303).contains(&renewals), "{renewals} in ten minutes");
}

#[windlass_cluster::test]
async fn a_killed_leader_is_replaced_in_bounded_time(cluster: TestCluster) {
    let log = Log::default();
    let first = start(&cluster, "a", &log).await;
    let second = start(&cluster, "b", &log).await;
    cluster.advance(minutes(1)).await;
    first.kill();
    cluster.create(secret("one")).await;
    let took = until_leads(&second).await;
    assert!(took <= seconds(20), "{took:?}");
    cluster.settle().await;
    assert_eq!(log.distinct(), ["b made one"]);
}

#[windlass_cluster::test]
async fn a_leader_that_stops_hands_over_at_once(cluster: TestCluster) {
    let log = Log::default();
    let first = start(&cluster, "a", &log).await;
    let second = start(&cluster, "b", &log).await;
    cluster.advance(minutes(1)).await;
    first.stop().await;
    assert_eq!(holder(&cluster).await, None);
    let took = until_leads(&second).await;
    assert!(took <= seconds(3), "{took:?}");
    let third = start(&cluster, "c", &log).await;
    cluster.create(secret("one")).await;
    cluster.advance(minutes(1)).await;
    assert_eq!(log.distinct(), ["b made one"]);
    assert!(second.leads() && !third.leads());
}

#[windlass_cluster::test]
async fn wrong_clocks_do_not_matter(cluster: TestCluster) {
    let log = Log::default();
    let (early, late) = (
        SignedDuration::from_hours(-5),
        SignedDuration::from_hours(5),
    );
    let first = cluster
        .start_replica(&operator("a", &log), "a", early)
        .await;
    let second = cluster.start_replica(&operator("b", &log), "b", late).await;
    cluster.advance(minutes(10)).await;
    assert!(
        first.leads() && !second.leads(),
        "an old renewal is not an old lease"
    );
    drop(first);
    let took = until_leads(&second).await;
    assert!((seconds(13)..=seconds(20)).contains(&took), "{took:?}");
    let third = cluster
        .start_replica(&operator("c", &log), "c", early)
        .await;
    cluster.advance(minutes(10)).await;
    assert!(
        second.leads() && !third.leads(),
        "nor is one from the future a young one"
    );
    drop(second);
    let took = until_leads(&third).await;
    assert!(took <= seconds(20), "{took:?}");
}

#[windlass_cluster::test]
async fn a_leader_that_cannot_renew_writes_nothing_after_its_deadline(cluster: TestCluster) {
    let log = Log::default();
    let first = start(&cluster, "a", &log).await;
    let second = start(&cluster, "b", &log).await;
    cluster.advance(minutes(1)).await;
    let lease = "leases.coordination.k8s.io";
    cluster.fail(
        Failure::with(500)
            .by("maker")
            .on(lease)
            .lasting(seconds(60)),
    );
    tokio::time::sleep(seconds(5)).await;
    cluster.create(secret("early")).await;
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(log.distinct(), ["a made early"], "the lease still holds");
    tokio::time::sleep(seconds(6)).await;
    assert!(!first.leads());
    first.lost().await;
    cluster.create(secret("late")).await;
    tokio::time::sleep(seconds(30)).await;
    assert_eq!(log.distinct(), [""; 0], "nobody leads, nobody writes");
    assert!(
        !writes(&cluster, "maker")
            .iter()
            .any(|one| one.contains("late"))
    );
    drop(first);
    until_leads(&second).await;
    cluster.advance(seconds(10)).await;
    assert_eq!(log.distinct(), ["b made early", "b made late"]);
}

/// Works for a long time, and writes at the end.
struct Ponderous(Owned<ConfigMap>, Log);

impl Reconciler for Ponderous {
    type Object = Secret;

    async fn reconcile(&self, _: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        tokio::time::sleep(seconds(30)).await;
        let written = self.0.apply(ctx, map("late", &[])).await;
        self.1.push(written.unwrap_err().to_string());
        Ok(Action::done())
    }
}

#[windlass_cluster::test]
async fn a_reconcile_that_outlives_its_lease_finds_the_gate_closed(cluster: TestCluster) {
    let log = Log::default();
    let told = log.clone();
    let declare = move |declare: &mut Declare<Secret>| Ponderous(declare.owns(), told.clone());
    let controller = Controller::of_existing().reconciler(declare);
    let ponderous = Operator::new("maker").controller(controller);
    let none = SignedDuration::ZERO;
    let first = cluster.start_replica(&ponderous, "a", none).await;
    cluster.create(secret("one")).await;
    tokio::time::sleep(seconds(1)).await;
    let lease = "leases.coordination.k8s.io";
    cluster.fail(
        Failure::with(500)
            .by("maker")
            .on(lease)
            .lasting(seconds(60)),
    );
    tokio::time::sleep(seconds(40)).await;
    assert_eq!(
        log.distinct(),
        [
            "cannot apply configmaps default/late: ServiceError: this process does not hold the \
          lease: the write was not sent"
        ]
    );
    let sent = cluster.requests_of("maker");
    assert!(
        !sent
            .iter()
            .any(|one| one.resource == "configmaps" && one.verb.writes())
    );
    drop(first);
}
