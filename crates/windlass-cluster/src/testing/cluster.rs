//! The test cluster and what a test does with it.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use windlass::manifests::Description;
use windlass::{
    Key, Kind, Operator,
    kind::{KindInfo, KindScope, Named},
    run::Running,
    testing::{Activity, Environment},
};
use windlass_apiserver::webhook::LocalWebhooks;
use windlass_apiserver::{ApiServer, Identity, Snapshot};
use windlass_explore::race::Race;
use windlass_node::simulated::{self, SimulatedNode, SimulatedNodeConfig};
use windlass_workloads::{LocalVolumes, WorkloadsConfig};

use super::faults::{Failure, Faults, Request, user_of};
use super::outside::{Outside, OutsideCall};
use super::pristine;
use super::started::{Maker, Origin, Started};
use crate::operators::{self, Account};
use crate::webhooks;

/// Where virtual time starts.
pub(super) const START: &str = "2030-01-01T00:00:00Z";
/// The namespace the short forms work in.
const NAMESPACE: &str = "default";
/// The name of the node.
const NODE: &str = "simulated";
/// What pods would know the API server by. In one process there is no TLS, and so no certificate.
const ROOT_CA: &str = "in process: no certificate\n";
/// Where volumes would be.
const VOLUMES: &str = "/volumes";
/// A cluster that is still at work after this much virtual time never settles.
const SETTLE_LIMIT: Duration = Duration::from_hours(1);

/// A cluster in this process: API server, controllers and a simulated node, under virtual time.
///
/// Nothing in it touches a socket, a file or the machine's clock. Clones are the same cluster;
/// when the last one is dropped, everything in it ends.
#[derive(Clone)]
pub struct TestCluster(Arc<Inner>);

struct Inner {
    seed: u64,
    server: ApiServer,
    environment: Environment,
    faults: Arc<Faults>,
    webhooks: LocalWebhooks,
    node: SimulatedNode,
    /// The controllers every cluster has.
    controllers: Started,
    operators: Mutex<Vec<Started>>,
    beside: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
    /// Fields that replays do not compare.
    fleeting: Mutex<Vec<String>>,
    /// The node lives as long as the cluster.
    _node: Running,
}

impl TestCluster {
    /// A fresh cluster. Everything that becomes random in it follows from `seed`.
    pub async fn new(seed: u64) -> Self {
        Self::made(seed, Some(pristine::snapshot())).await
    }

    /// A cluster with what is in `snapshot`; without one, with what every cluster begins with.
    pub(super) async fn made(seed: u64, snapshot: Option<&Snapshot>) -> Self {
        let start: Timestamp = START.parse().unwrap_or(Timestamp::UNIX_EPOCH);
        let faults = Arc::new(Faults::default());
        let clock = windlass_apiserver::Clock::starting_at(start);
        let webhooks = LocalWebhooks::new(clock);
        let config = windlass_apiserver::Config {
            clock,
            webhooks: Arc::new(webhooks.clone()),
            random: windlass_apiserver::Random::seeded(seed),
            hooks: Some(faults.clone()),
            ..windlass_apiserver::Config::default()
        };
        let server = match snapshot {
            Some(snapshot) => ApiServer::starting_from(config, snapshot),
            None => ApiServer::new(config),
        };
        let environment = Environment {
            clock: windlass::testing::Clock::starting_at(start),
            random: windlass::testing::Random::seeded(seed),
            activity: Activity::default(),
            ..Environment::default()
        };
        let client = |identity| Client::new(server.in_process(identity), NAMESPACE);
        let admin = client(Identity::admin());
        let workloads = windlass_workloads::operator(WorkloadsConfig {
            root_ca: Some(ROOT_CA.to_owned()),
            // Nothing is ever written there: the node is a simulated one.
            local_volumes: Some(LocalVolumes {
                folder: VOLUMES.into(),
                remove: |_| Ok(()),
            }),
        });
        let account = Account::of_system(&workloads);
        if snapshot.is_none() {
            let admitted = operators::admit(&admin, &workloads, &account).await;
            answer(admitted, "admit", workloads.name());
        }
        let controllers = Started::new(
            Arc::new(workloads),
            account.user(),
            client(account.identity()),
            environment.clone(),
            faults.clone(),
        );
        let (node_operator, node) = simulated::operator(SimulatedNodeConfig::new(NODE));
        let node_user = Identity::new(format!("system:node:{NODE}"), ["system:nodes".to_owned()]);
        if snapshot.is_none() {
            let admitted = operators::admit_user(&admin, &node_operator, &node_user.user).await;
            answer(admitted, "admit", &node_user.user);
        }
        let node_running = node_operator.start(client(node_user), environment.clone());
        let cluster = Self(Arc::new(Inner {
            seed,
            server,
            environment,
            faults,
            webhooks,
            node,
            controllers,
            operators: Mutex::default(),
            beside: Mutex::default(),
            fleeting: Mutex::default(),
            _node: node_running,
        }));
        cluster.settle().await;
        cluster
    }

    /// Installs an operator's kinds and runs it, as its own `ServiceAccount` with its own role.
    pub async fn start(&self, operator: Operator) {
        self.start_origin(Err(Arc::new(operator)), None).await;
    }

    /// As `start`, for an operator that calls a simulated system outside of the cluster: `make` makes
    /// both, for this cluster and for each in which a scenario is replayed.
    pub async fn start_made(
        &self,
        make: impl Fn(&TestCluster) -> Operator + Send + Sync + 'static,
    ) {
        self.start_origin(Ok(Arc::new(make)), None).await;
    }

    /// Starts an operator that was started in another cluster; with other rules than its own, if
    /// they are given.
    pub(super) async fn start_origin(&self, origin: Origin, rules: Option<&Description>) {
        match origin {
            Ok(maker) => {
                let operator = Arc::new(maker(self));
                self.start_as(operator, rules, Some(maker)).await;
            }
            Err(operator) => self.start_as(operator, rules, None).await,
        }
    }

    async fn start_as(
        &self,
        operator: Arc<Operator>,
        rules: Option<&Description>,
        maker: Option<Maker>,
    ) {
        if let Err(error) = operator.check() {
            panic!("cannot start {}: {error}", operator.name());
        }
        if let Err(error) = operators::install(&self.client(), &operator).await {
            panic!("cannot install the kinds of {}: {error}", operator.name());
        }
        let account = Account::of(&operator);
        let admitted = operators::admit(&self.client(), &operator, &account).await;
        answer(admitted, "admit", operator.name());
        if let Some(rules) = rules {
            let given = operators::give_rules(&self.client(), rules).await;
            answer(given, "give a role to", operator.name());
        }
        let mut started = Started::new(
            operator,
            account.user(),
            self.client_of(account.identity()),
            Environment {
                webhooks: webhooks::serving(&self.0.webhooks, &account.namespace).0,
                ..self.0.environment.clone()
            },
            self.0.faults.clone(),
        );
        started.maker = maker;
        self.lock_operators().push(started);
        self.settle().await;
    }

    /// Where the simulation of an outside system asks what becomes of an operator's calls to it.
    pub fn outside(&self) -> Outside {
        Outside::new(self.0.faults.clone())
    }

    /// Every call to an outside system so far, in order.
    pub fn outside_calls(&self) -> Vec<OutsideCall> {
        self.0.faults.outside_calls()
    }

    /// Replays do not compare fields of these names: they count what differs from run to run.
    pub fn do_not_compare(&self, fields: &[&str]) {
        let fleeting = self.0.fleeting.lock();
        let mut fleeting = fleeting.unwrap_or_else(PoisonError::into_inner);
        fleeting.extend(fields.iter().map(ToString::to_string));
    }

    pub(super) fn fleeting(&self) -> Vec<String> {
        let fleeting = self.0.fleeting.lock();
        fleeting.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What everybody in the cluster tells of its work: a simulation does so too, or the cluster
    /// would be settled before it is done.
    pub fn activity(&self) -> Activity {
        self.0.environment.activity.clone()
    }

    /// Keeps something beside the cluster, for as long as the cluster lives: it must not keep the
    /// cluster alive itself.
    pub fn keep<T: Any + Send + Sync>(&self, thing: Arc<T>) {
        let beside = self.0.beside.lock();
        beside.unwrap_or_else(PoisonError::into_inner).push(thing);
    }

    /// What was kept beside the cluster, by its type; panics when there is nothing of it.
    pub fn kept<T: Any + Send + Sync>(&self) -> Arc<T> {
        let beside = self.0.beside.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = beside.iter().filter_map(|one| one.clone().downcast().ok());
        let found = found.next();
        found.unwrap_or_else(|| panic!("no {} beside the cluster", std::any::type_name::<T>()))
    }

    /// Kills every operator, between two steps of whatever it is doing, and starts it again.
    pub async fn restart_operators(&self) {
        for started in self.lock_operators().iter() {
            started.crash().notify_one();
        }
        self.settle().await;
    }

    /// Ends every operator that was started, as a crash would, for good.
    pub fn stop_operators(&self) {
        self.lock_operators().clear();
    }

    fn lock_operators(&self) -> MutexGuard<'_, Vec<Started>> {
        self.0
            .operators
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The operators that were started, in that order.
    pub(super) fn operators(&self) -> Vec<Arc<Operator>> {
        let started = self.lock_operators();
        started
            .iter()
            .map(super::started::Started::operator)
            .collect()
    }

    /// How each operator that was started is started in another cluster, in that order.
    pub(super) fn origins(&self) -> Vec<Origin> {
        let started = self.lock_operators();
        let origin = |one: &Started| one.maker.clone().ok_or_else(|| one.operator());
        started.iter().map(origin).collect()
    }

    /// Who the controllers are that every cluster has.
    pub(super) fn controllers_user(&self) -> &str {
        self.0.controllers.user()
    }

    /// What kills whoever acts as `user`.
    pub(super) fn crash_of(&self, user: &str) -> Option<Arc<Notify>> {
        let operators = self.lock_operators();
        std::iter::once(&self.0.controllers)
            .chain(operators.iter())
            .find(|started| started.user() == user)
            .map(Started::crash)
    }

    pub(super) fn environment(&self) -> &Environment {
        &self.0.environment
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// What the API server holds now.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.0.server.snapshot()
    }

    pub(super) fn seed(&self) -> u64 {
        self.0.seed
    }

    /// Waits until nothing in the cluster has anything left to do, moving virtual time to whatever is due next.
    ///
    /// Panics, naming what is still at work, when that takes more than an hour of virtual time.
    pub async fn settle(&self) {
        let activity = &self.0.environment.activity;
        let limit = Instant::now() + SETTLE_LIMIT;
        let mut pause = Duration::from_millis(1);
        loop {
            // On a paused clock a sleep ends only when every task that can run has run.
            sleep(pause).await;
            if activity.is_idle() {
                return;
            }
            assert!(
                Instant::now() < limit,
                "the cluster did not settle within {SETTLE_LIMIT:?} of virtual time; still at work: {:#?}",
                activity.describe()
            );
            if let (Some(due), false) = (activity.next_due(), activity.is_busy()) {
                sleep_until(due).await;
                pause = Duration::from_millis(1);
            } else {
                // Something waits for a timer it did not tell of.
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        }
    }

    /// Lets `time` pass, and then settles.
    pub async fn advance(&self, time: Duration) {
        sleep(time).await;
        self.settle().await;
    }

    /// Lets much time pass, from one thing that somebody has planned to the next, and settles after
    /// each. In between the cluster is as a machine that sleeps: what only goes round, such as
    /// watches that end and begin again, does so once, and a year takes seconds.
    pub async fn leap(&self, time: Duration) {
        let end = Instant::now() + time;
        self.settle().await;
        loop {
            let planned = self.0.environment.activity.next_planned();
            let next = planned.filter(|at| *at < end).unwrap_or(end);
            tokio::time::advance(next.saturating_duration_since(Instant::now())).await;
            self.settle().await;
            if Instant::now() >= end {
                return;
            }
        }
    }

    /// A client with the administrator's rights, for whatever the short forms do not cover.
    pub fn client(&self) -> Client {
        self.client_of(Identity::admin())
    }

    /// A client with the rights of an operator that was started, and no others.
    pub fn client_as(&self, operator: &str) -> Client {
        self.client_of(Identity::service_account(
            &format!("{operator}-system"),
            operator,
        ))
    }

    pub(super) fn client_of(&self, identity: Identity) -> Client {
        Client::new(self.0.server.in_process(identity), NAMESPACE)
    }

    /// The simulated node, to play tricks on.
    pub fn node(&self) -> &SimulatedNode {
        &self.0.node
    }

    /// Every request that reached the API server so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.0.faults.log()
    }

    /// The requests one operator sent so far.
    pub fn requests_of(&self, operator: &str) -> Vec<Request> {
        let user = user_of(operator);
        self.requests()
            .into_iter()
            .filter(|request| request.user == user)
            .collect()
    }

    /// Writes of operators that named neither uid nor version of what they meant, and hit what had
    /// changed since the operator was shown it. Each is printed as a warning, too.
    pub fn races(&self) -> Vec<Race> {
        self.0.faults.races()
    }

    /// The metrics of an operator that was started, as text.
    pub fn metrics(&self, operator: &str) -> String {
        let operators = self.operators();
        let found = operators.iter().find(|one| one.name() == operator);
        found.map(|one| one.metrics().text()).unwrap_or_default()
    }

    /// The value of one series of an operator's metrics, summed over all labels that contain these.
    pub fn metric(&self, operator: &str, name: &str, labels: &str) -> f64 {
        let text = self.metrics(operator);
        let series = text.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(labels))
        });
        series
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// Makes requests fail.
    pub fn fail(&self, failure: Failure) {
        self.0.faults.fail(failure);
    }

    /// What an operator's watch of a resource delivers is so late from now on: up to half a minute. One
    /// that is silent for longer counts as dead, and begins again.
    pub fn delay_watch(&self, operator: &str, resource: &str, delay: Duration) {
        let (user, resource) = (user_of(operator), resource.to_owned());
        self.0.faults.delay(user, resource, delay);
    }

    /// What the watches of the cluster's own controllers deliver of a resource is so late from now on.
    pub fn delay_controllers(&self, resource: &str, delay: Duration) {
        let user = self.0.controllers.user().to_owned();
        self.0.faults.delay(user, resource.to_owned(), delay);
    }

    /// What the node's watches deliver of a resource is so late from now on.
    pub fn delay_node(&self, resource: &str, delay: Duration) {
        let user = format!("system:node:{NODE}");
        self.0.faults.delay(user, resource.to_owned(), delay);
    }

    /// Every watch of every operator and of the cluster's own controllers delivers up to `most` late
    /// from now on, at random from the cluster's seed, each time another time; zero ends it.
    pub fn delay_watches_at_random(&self, most: Duration) {
        let random = windlass::testing::Random::seeded(self.0.seed);
        self.0.faults.delay_at_random(most, random);
    }

    /// Breaks the connection of every watch there is.
    pub fn break_watches(&self) {
        self.0.faults.break_watches();
    }

    /// The API server is gone for so long, as far as anybody can tell: every connection breaks,
    /// and requests fail until it is back.
    pub fn interrupt(&self, time: Duration) {
        self.fail(Failure::with(503).lasting(time));
        self.break_watches();
    }

    /// The objects of a kind in a namespace, or of the whole cluster for none.
    fn api<K: Kind>(&self, namespace: Option<&str>) -> Api<K> {
        <K::Scope as KindScope>::api(self.client(), namespace)
    }

    fn key<K: Kind>(name: &impl Named) -> Key {
        name.key_for(&KindInfo::of::<K>(), Some(NAMESPACE))
    }

    /// Creates an object; in the namespace `default` if it names none.
    pub async fn create<K: Kind>(&self, object: K) -> K {
        let namespace = object.meta().namespace.clone();
        let api = self.api::<K>(Some(namespace.as_deref().unwrap_or(NAMESPACE)));
        let created = api.create(&PostParams::default(), &object).await;
        answer(created, "create", &object.name_any())
    }

    /// The object of that name; panics if there is none. As everywhere below, a plain name is one in
    /// the namespace `default`, and `("other", "name")` one in another.
    pub async fn get<K: Kind>(&self, name: impl Named) -> K {
        let key = Self::key::<K>(&name);
        let got = self.api::<K>(key.namespace()).get(key.name()).await;
        answer(got, "get", key.name())
    }

    /// The object of that name, if there is one.
    pub async fn find<K: Kind>(&self, name: impl Named) -> Option<K> {
        let key = Self::key::<K>(&name);
        let found = self.api::<K>(key.namespace()).get_opt(key.name()).await;
        answer(found, "get", key.name())
    }

    /// Every object of a kind in the namespace `default`, or in the cluster if the kind is
    /// cluster-scoped.
    pub async fn list<K: Kind>(&self) -> Vec<K> {
        let api = self.api::<K>(Some(NAMESPACE));
        answer(api.list(&ListParams::default()).await, "list", "all").items
    }

    /// Every object of a kind in all namespaces.
    pub async fn list_all<K: Kind>(&self) -> Vec<K> {
        let api = self.api::<K>(None);
        answer(api.list(&ListParams::default()).await, "list", "all").items
    }

    /// Changes an object by a JSON merge patch.
    pub async fn patch<K: Kind>(&self, name: impl Named, patch: serde_json::Value) -> K {
        let key = Self::key::<K>(&name);
        let api = self.api::<K>(key.namespace());
        let patch = Patch::Merge(patch);
        let patched = api.patch(key.name(), &PatchParams::default(), &patch).await;
        answer(patched, "patch", key.name())
    }

    /// Deletes an object.
    pub async fn delete<K: Kind>(&self, name: impl Named) {
        let key = Self::key::<K>(&name);
        let api = self.api::<K>(key.namespace());
        let deleted = api.delete(key.name(), &DeleteParams::default()).await;
        answer(deleted.map(|_| ()), "delete", key.name());
    }
}

/// Ends a test with a sentence that says what was done to which object.
fn answer<T>(result: kube::Result<T>, verb: &str, name: &str) -> T {
    result.unwrap_or_else(|error| panic!("cannot {verb} {name}: {error}"))
}
