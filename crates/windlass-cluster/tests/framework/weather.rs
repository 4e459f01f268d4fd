//! Everything between an operator and the API server fails, in every way there is: what the
//! operator does is right in the end, and what it does not know it says.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt, api::ObjectMeta};
use serde_json::json;
use tokio::time::{Instant, sleep};
use windlass::{
    Action, Context, Controller, Declare, Event, Key, Operator, Reconciler, Result,
    handle::Owned,
    run::{Launch, LeaderElection, Running},
    testing::{Activity, Clock, Environment, Random},
};
use windlass_cluster::{TestCluster, Verb, minutes, seconds};

use crate::{
    edge::{Edge, Trouble},
    stage::map,
};

const NAME: &str = "copier";
/// How soon anything that stands still must be noticed.
const NOTICED: Duration = Duration::from_mins(1);

/// What there should be: the note of each Secret.
#[derive(Clone, Default)]
struct Wanted {
    notes: Arc<Mutex<BTreeMap<String, String>>>,
    /// Secrets that were reported as gone, and are not.
    wrong: Arc<Mutex<Vec<String>>>,
}

impl Wanted {
    fn set(&self, name: &str, note: &str) {
        let mut notes = self.notes.lock().unwrap();
        notes.insert(name.to_owned(), note.to_owned());
    }
}

/// Copies the note of each Secret to a `ConfigMap`, and says so.
struct Copier {
    maps: Owned<ConfigMap>,
    wanted: Wanted,
}

impl Reconciler for Copier {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let note = secret.annotations().get("note").cloned();
        let note = note.unwrap_or_default();
        let name = secret.name_any();
        self.maps.apply(ctx, map(&name, &[("note", &note)])).await?;
        ctx.event(Event::normal("Copied", format!("copied {note}")));
        Ok(Action::done())
    }

    async fn gone(&self, key: &Key) -> Result<()> {
        if self.wanted.notes.lock().unwrap().contains_key(key.name()) {
            self.wanted.wrong.lock().unwrap().push(key.to_string());
        }
        Ok(())
    }
}

fn copier(wanted: &Wanted) -> Operator {
    let wanted = wanted.clone();
    let declare = move |declare: &mut Declare<Secret>| Copier {
        maps: declare.owns(),
        wanted: wanted.clone(),
    };
    Operator::new(NAME).controller(Controller::of_existing().reconciler(declare))
}

/// A replica behind an edge, which is started again when it has lost the lease, as a pod would be.
struct Weather {
    cluster: TestCluster,
    operator: Operator,
    edge: Edge,
    running: Option<Running>,
    wanted: Wanted,
    random: Random,
    restarts: usize,
    made: usize,
}

impl Weather {
    async fn new(cluster: &TestCluster, seed: u64) -> Self {
        let wanted = Wanted::default();
        let operator = copier(&wanted);
        // Installs its rights, and gives the lease back.
        let first = cluster.start_replica(&operator, "first", SignedDuration::ZERO);
        first.await.stop().await;
        let mut weather = Self {
            edge: Edge::new(cluster.client_as(NAME)),
            cluster: cluster.clone(),
            operator,
            running: None,
            wanted,
            random: Random::seeded(seed),
            restarts: 0,
            made: 0,
        };
        weather.start();
        weather.pass(seconds(30)).await;
        assert_eq!(weather.stalls(), [""; 0]);
        weather
    }

    fn start(&mut self) {
        let environment = Environment {
            clock: Clock::starting_at("2030-01-01T00:00:00Z".parse().unwrap()),
            random: Random::seeded(self.random.bits()),
            activity: Activity::default(),
            ..Environment::default()
        };
        let namespace = format!("{NAME}-system");
        let identity = format!("replica-{}", self.restarts);
        let launch = Launch {
            leader_election: Some(LeaderElection::new(namespace, NAME, identity)),
            ..Launch::default()
        };
        let launched = self
            .operator
            .launch(self.edge.client(), environment, launch);
        self.running = Some(launched);
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("it runs")
    }

    /// What keeps it from being ready, as `/readyz` says it.
    fn stalls(&self) -> Vec<String> {
        let debug = self.running().debug();
        [debug.unsynced(), debug.stalled()].concat()
    }

    fn metric(&self, name: &str) -> f64 {
        let text = self.operator.metrics().text();
        let series = text.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        });
        series
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// Lets time pass. A replica that lost the lease ends, and is started again after a while.
    async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let step = seconds(1).min(end.saturating_duration_since(Instant::now()));
            let running = self.running.as_ref().expect("it runs");
            let lost = tokio::time::timeout(step, running.lost()).await.is_ok();
            if lost {
                self.running = None;
                self.restarts += 1;
                self.start();
            }
        }
    }

    /// Changes what should be: a Secret is created, changed or deleted, or a copy is tampered with.
    async fn change(&mut self) {
        let names: Vec<String> = self.wanted.notes.lock().unwrap().keys().cloned().collect();
        let some = names.get(usize::try_from(self.random.below(names.len() as u64)).unwrap());
        let note = format!("note {}", self.random.below(1000));
        let annotated = json!({"metadata": {"annotations": {"note": note}}});
        match (self.random.below(4), some) {
            (0, Some(name)) => {
                self.wanted.set(name, &note);
                self.cluster.patch::<Secret>(name.as_str(), annotated).await;
            }
            (1, Some(name)) if names.len() > 5 => {
                self.wanted.notes.lock().unwrap().remove(name);
                self.cluster.delete::<Secret>(name.as_str()).await;
            }
            (2, Some(name)) => {
                if self
                    .cluster
                    .find::<ConfigMap>(name.as_str())
                    .await
                    .is_some()
                {
                    let drift = json!({"data": {"note": "tampered with"}});
                    self.cluster.patch::<ConfigMap>(name.as_str(), drift).await;
                }
            }
            _ => {
                self.made += 1;
                let name = format!("secret-{}", self.made);
                self.wanted.set(&name, &note);
                self.cluster
                    .create(Secret {
                        metadata: ObjectMeta {
                            name: Some(name),
                            annotations: Some([("note".to_owned(), note)].into()),
                            ..ObjectMeta::default()
                        },
                        ..Secret::default()
                    })
                    .await;
            }
        }
    }

    /// Waits until the operator says that something stands still.
    async fn until_noticed(&self, what: &str) -> Duration {
        let begun = Instant::now();
        let failures = self.metric("windlass_watch_failures_total");
        loop {
            let failing = self.metric("windlass_watch_failing_seconds") > 0.0;
            let failed = self.metric("windlass_watch_failures_total") > failures;
            if !self.stalls().is_empty() && (failing || failed) {
                return begun.elapsed();
            }
            let passed = begun.elapsed();
            assert!(
                passed <= NOTICED,
                "{what} was not noticed within {passed:?}"
            );
            sleep(seconds(1)).await;
        }
    }

    /// One spell of bad weather; changes go on meanwhile.
    async fn spell(&mut self) -> &'static str {
        let random = Random::seeded(self.random.bits());
        // Now and then the lease is lost, too.
        self.edge.spare_lease(self.random.below(4) > 0);
        let storm = move |one: fn(u64) -> Trouble| {
            let random = random.clone();
            move |_: &_| match random.below(2) {
                0 => Trouble::None,
                _ => one(random.below(100)),
            }
        };
        let name = match self.random.below(6) {
            0 => {
                self.edge.judge(storm(|bits| {
                    let codes = [404, 429, 500, 503];
                    Trouble::Status(codes[usize::try_from(bits % 4).unwrap()])
                }));
                "errors"
            }
            1 => {
                self.edge.judge(storm(|bits| match bits % 5 {
                    0 => Trouble::Cut,
                    1 => Trouble::AnswerLost,
                    2 => Trouble::HalfBody,
                    3 => Trouble::SilentBody,
                    _ => Trouble::Unanswered,
                }));
                "half answers"
            }
            2 => {
                self.edge.judge(|_| Trouble::Status(404));
                self.edge.cut_answers();
                "nothing but 404"
            }
            3 => {
                self.edge.judge(|_| Trouble::SilentBody);
                self.edge.stall_answers();
                "silence after the head"
            }
            4 => {
                self.edge.judge(|_| Trouble::Unanswered);
                self.edge.stall_answers();
                "silence"
            }
            _ => {
                self.edge.judge(|_| Trouble::Cut);
                self.edge.cut_answers();
                "restart of the API server"
            }
        };
        let seconds_of_it = 5 + self.random.below(90);
        for _ in 0..seconds_of_it {
            if self.random.below(10) == 0 {
                self.change().await;
            }
            self.pass(seconds(1)).await;
        }
        self.edge.clear();
        self.edge.spare_lease(false);
        name
    }

    /// What was there when the weather had been fair for a while.
    async fn check(&self) {
        assert_eq!(self.stalls(), [""; 0], "ready again");
        assert_eq!(
            *self.wanted.wrong.lock().unwrap(),
            [""; 0],
            "reported as gone"
        );
        let maps: Api<ConfigMap> = Api::namespaced(self.cluster.client(), "default");
        let maps = maps.list(&kube::api::ListParams::default()).await.unwrap();
        let copies: BTreeMap<String, String> = maps
            .items
            .into_iter()
            .filter(|map| !map.owner_references().is_empty())
            .map(|map| (map.name_any(), map.data.unwrap_or_default()["note"].clone()))
            .collect();
        assert_eq!(copies, *self.wanted.notes.lock().unwrap());
        let requests = self.cluster.requests_of(NAME);
        let deletes = requests.iter().filter(|one| one.verb == Verb::Delete);
        let deletes: BTreeSet<String> = deletes.map(ToString::to_string).collect();
        assert!(
            deletes.is_empty(),
            "the operator deletes nothing: {deletes:?}"
        );
        assert!(self.metric("workqueue_depth").abs() < f64::EPSILON);
        assert!(self.metric("windlass_events_waiting").abs() < f64::EPSILON);
        self.check_lease();
    }

    /// Every write was sent while the lease held that was renewed last before it.
    fn check_lease(&self) {
        let renew = LeaderElection::new("", "", "").renew;
        let renewals = self.edge.renewals();
        for write in self.edge.writes() {
            let before = renewals.iter().rev().find(|at| **at <= write.at);
            let age = before.map(|at| write.at.duration_since(*at));
            assert!(
                age.is_some_and(|age| age <= renew),
                "{} {} was sent {age:?} after the last renewal",
                write.method,
                write.path
            );
        }
    }
}

/// Half an hour of it, one spell after the other with fair weather in between.
#[windlass_cluster::test]
async fn operator_in_bad_weather_is_right_in_the_end(cluster: TestCluster) {
    let mut weather = Weather::new(&cluster, 1).await;
    let begun = Instant::now();
    let mut spells: BTreeMap<&str, usize> = BTreeMap::new();
    let mut most_waiting = 0.0_f64;
    while begun.elapsed() < minutes(30) {
        *spells.entry(weather.spell().await).or_default() += 1;
        most_waiting = most_waiting.max(weather.metric("windlass_events_waiting"));
        let fair = 5 + weather.random.below(60);
        weather.pass(seconds(fair)).await;
        weather.change().await;
    }
    weather.pass(minutes(5)).await;
    weather.check().await;
    println!(
        "{spells:?}, {} restarts, {} writes, {} renewals, {} watches failed, at most {most_waiting} events waited",
        weather.restarts,
        weather.edge.writes().len(),
        weather.edge.renewals().len(),
        weather.metric("windlass_watch_failures_total"),
    );
    assert_eq!(spells.len(), 6, "every sort of weather");
    assert!(weather.restarts > 0, "the lease was lost now and then");
}

/// The API server's machine loses power: nothing is in flight, so TCP never notices. Watches used
/// to hang until the process was restarted, while it led on a cache that stood still.
#[windlass_cluster::test]
async fn watch_that_falls_silent_is_noticed_within_a_minute(cluster: TestCluster) {
    let mut weather = Weather::new(&cluster, 1).await;
    for begin in [5, 47, 100, 300] {
        weather.pass(seconds(begin)).await;
        assert_eq!(weather.stalls(), [""; 0]);
        weather.edge.spare_lease(true);
        weather.edge.judge(|_| Trouble::Unanswered);
        weather.edge.stall_answers();
        let took = weather.until_noticed("silence").await;
        println!("noticed after {took:?}");
        assert!(
            weather.running().leads(),
            "the lease has a connection of its own"
        );
        weather.edge.clear();
        weather.change().await;
        weather.pass(minutes(2)).await;
        weather.check().await;
    }
}

/// What is between takes the request for the watch, and says nothing from then on.
#[windlass_cluster::test]
async fn watch_that_is_accepted_and_silent_is_noticed_within_a_minute(cluster: TestCluster) {
    let mut weather = Weather::new(&cluster, 1).await;
    weather.edge.spare_lease(true);
    weather.edge.judge(|_| Trouble::SilentBody);
    weather.edge.stall_answers();
    weather.until_noticed("silence after the head").await;
    weather.pass(minutes(5)).await;
    assert!(!weather.stalls().is_empty(), "and as long as it lasts");
    weather.edge.clear();
    weather.change().await;
    weather.pass(minutes(2)).await;
    weather.check().await;
}

/// A load balancer without backends answers everything with 404, discovery too.
#[windlass_cluster::test]
async fn nothing_but_not_found_deletes_nothing_and_is_noticed(cluster: TestCluster) {
    let mut weather = Weather::new(&cluster, 1).await;
    for _ in 0..10 {
        weather.change().await;
    }
    weather.pass(minutes(1)).await;
    weather.edge.spare_lease(true);
    weather.edge.judge(|_| Trouble::Status(404));
    weather.edge.cut_answers();
    weather.until_noticed("404 to everything").await;
    weather.pass(minutes(5)).await;
    weather.edge.clear();
    weather.pass(minutes(2)).await;
    weather.check().await;
}

/// An event that is never taken used to keep every later one in memory.
#[windlass_cluster::test]
async fn events_that_are_not_taken_do_not_pile_up(cluster: TestCluster) {
    let mut weather = Weather::new(&cluster, 1).await;
    weather.edge.judge(|sent| {
        if sent.path.contains("/events") {
            Trouble::Unanswered
        } else {
            Trouble::None
        }
    });
    weather.change().await;
    let name = weather.wanted.notes.lock().unwrap().keys().next().cloned();
    let name = name.unwrap();
    for number in 0..1200 {
        let note = format!("note {number}");
        let patch = json!({"metadata": {"annotations": {"note": note}}});
        weather.cluster.patch::<Secret>(name.as_str(), patch).await;
        weather
            .wanted
            .notes
            .lock()
            .unwrap()
            .insert(name.clone(), note);
        sleep(Duration::from_millis(20)).await;
    }
    let waiting = weather.metric("windlass_events_waiting");
    let lost = weather.metric("windlass_events_lost_total");
    println!("{waiting} events wait, {lost} were lost");
    assert!(waiting <= 2001.0, "{waiting} events wait");
    assert!(lost > 0.0, "and it says that events were lost");
}

/// A client that sends a refused request again by itself, however late, as many do.
#[derive(Clone)]
struct Retrying(Edge);

impl tower::Service<http::Request<kube::client::Body>> for Retrying {
    type Response = <Edge as tower::Service<http::Request<kube::client::Body>>>::Response;
    type Error = tower::BoxError;
    type Future = futures::future::BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<kube::client::Body>) -> Self::Future {
        let mut edge = self.0.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            loop {
                let again = http::Request::from_parts(parts.clone(), body.clone().into());
                let answer = edge.call(again).await?;
                if answer.status() != 503 {
                    return Ok(answer);
                }
                sleep(seconds(12)).await;
            }
        })
    }
}

/// The lease was looked at once, before the first attempt.
#[windlass_cluster::test]
async fn write_that_the_client_retries_is_not_sent_after_the_lease(cluster: TestCluster) {
    let mut weather = Weather::new(&cluster, 1).await;
    drop(weather.running.take());
    sleep(seconds(20)).await;
    let retrying = kube::Client::new(Retrying(weather.edge.clone()), "default");
    let environment = Environment {
        activity: Activity::default(),
        ..Environment::default()
    };
    let election = LeaderElection::new(format!("{NAME}-system"), NAME, "retrying");
    let launch = Launch {
        leader_election: Some(election),
        ..Launch::default()
    };
    weather.running = Some(weather.operator.launch(retrying, environment, launch));
    sleep(seconds(30)).await;
    assert!(weather.running().leads());
    weather.edge.judge(|sent| {
        if sent.method.is_safe() {
            Trouble::None
        } else {
            Trouble::Status(503)
        }
    });
    weather.change().await;
    sleep(seconds(60)).await;
    let writes = weather.edge.writes();
    assert!(!writes.is_empty(), "the first attempt was sent");
    weather.check_lease();
}
