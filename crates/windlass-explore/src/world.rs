//! One run: an API server that begins like all others, its controllers and node, an operator, and the
//! steps of a scenario.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};
use windlass::run::Running;
use windlass::testing::{Activity, Environment};
use windlass_apiserver::http::{Serving, TlsConfig};
use windlass_apiserver::pki::{Authority, KeyedCertificate};
use windlass_apiserver::{ApiServer, Clock, Config, Identity, Random, Snapshot};
use windlass_node::simulated::{self, Delays, SimulatedNodeConfig};
use windlass_workloads::{LocalVolumes, WorkloadsConfig};

use crate::edge::{Edge, Released, user};
use crate::invariant::{self, Invariant};
use crate::judge::Wrong;
use crate::plan::{Act, Plan};
use crate::process::{Ports, Process};
use crate::race::Race;
use crate::scenario::{Named, Pods, Power, Scenario, Step};
use crate::state::{Difference, Mask, State, changed_fields};
use crate::subject::{Kind, Life, Subject};
use crate::trace::{Happened, Record};

/// Where virtual time starts.
const START: &str = "2030-01-01T00:00:00Z";
/// The namespace of objects that name none.
const NAMESPACE: &str = "default";
/// Of what is known already, this part of the patience is enough.
const KNOWN: u32 = 4;
/// What is due later than that is not waited for.
const SOON: Duration = Duration::from_hours(24);
/// How often an operator that ends by itself is started again.
const RESTARTS: usize = 4;
/// How long the objects of a scenario may take to be accepted.
const ACCEPTED: Duration = Duration::from_secs(30);

/// Why a scenario cannot be judged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unusable {
    /// Something is missing on this machine.
    #[error("cannot {what}: {why}")]
    Machine {
        /// What was being done.
        what: &'static str,
        /// Why it failed.
        why: String,
    },
    /// The API server refuses what the scenario asks for.
    #[error("cannot {what}: {why}")]
    Refused {
        /// What was being done.
        what: String,
        /// The answer.
        why: String,
    },
    /// The operator does not run as it should when nothing disturbs it.
    #[error("undisturbed, {0}")]
    Undisturbed(String),
    /// A plan cannot be played.
    #[error("{0}")]
    Plan(String),
}

fn machine(what: &'static str) -> impl Fn(&dyn std::fmt::Display) -> Unusable {
    move |why| Unusable::Machine {
        what,
        why: why.to_string(),
    }
}

/// How long things are given.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Whether time is virtual.
    pub is_virtual: bool,
    /// For how long nothing happens in a run that has settled.
    pub quiet: Duration,
    /// How long a difference may stay before it counts.
    pub patience: Duration,
    /// How long a step may take to settle.
    pub limit: Duration,
    /// How often it is looked.
    pub tick: Duration,
    /// How long a pause is that stands in for a fault.
    pub pause: Duration,
}

impl Pace {
    /// For processes.
    pub fn real() -> Self {
        Self {
            is_virtual: false,
            quiet: Duration::from_millis(1_500),
            patience: Duration::from_secs(20),
            limit: Duration::from_mins(1),
            tick: Duration::from_millis(10),
            pause: Duration::from_millis(400),
        }
    }

    /// For functions under virtual time.
    pub fn virtual_time() -> Self {
        Self {
            is_virtual: true,
            quiet: Duration::from_secs(40),
            patience: Duration::from_mins(5),
            limit: Duration::from_hours(2),
            tick: Duration::from_secs(1),
            pause: Duration::from_secs(1),
        }
    }
}

/// What every run begins with.
pub struct Base {
    snapshot: Snapshot,
    authority: Authority,
    serving: KeyedCertificate,
    pods: Pods,
    pub(crate) pace: Pace,
    pub(crate) invariants: Vec<Invariant>,
    pub(crate) finally: Vec<Invariant>,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// The state after each step that was compared; none where it was not.
    pub(crate) states: Vec<Option<State>>,
    pub(crate) records: Vec<Record>,
    pub(crate) deleted: Vec<(usize, String)>,
    pub(crate) races: Vec<Race>,
    pub(crate) wrong: Option<(usize, Wrong)>,
    /// Whether every fault of its plan had its turn.
    pub(crate) complete: bool,
    pub(crate) took: Duration,
    /// The longest time between two things that happened within a step.
    pub(crate) longest_gap: Duration,
    /// Whether the operator asks for lists of any version.
    pub(crate) reads_any_version: bool,
}

/// What a run is compared with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) states: Vec<Option<State>>,
    pub(crate) mask: Mask,
    /// Objects of precious kinds that the operator deletes undisturbed.
    pub(crate) deleted: BTreeSet<String>,
    /// Writes that the operator makes whenever it starts.
    pub(crate) at_start: BTreeSet<String>,
}

impl Base {
    /// A cluster with the objects that a scenario begins with.
    pub async fn prepare(scenario: &Scenario, pace: Pace) -> Result<Self, Unusable> {
        let plurals: Vec<String> = scenario
            .setup
            .iter()
            .filter_map(|object| object["spec"]["names"]["plural"].as_str())
            .map(str::to_owned)
            .collect();
        let compile = |rules: &std::collections::BTreeMap<String, String>| {
            let compiled = rules
                .iter()
                .map(|(name, source)| Invariant::compile(name, source, &plurals));
            compiled
                .collect::<Result<Vec<_>, _>>()
                .map_err(Unusable::Plan)
        };
        let (invariants, finally) = (compile(&scenario.always)?, compile(&scenario.finally)?);
        let cannot = machine("make certificates");
        let authority = Authority::create().map_err(|error| cannot(&error))?;
        let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST)];
        let serving = authority
            .server("kube-apiserver", &loopback, &["localhost"])
            .map_err(|error| cannot(&error))?;
        let ground = Ground::begin(None, None, 0, pace, scenario.pods);
        ground.rest(pace).await;
        for object in &scenario.setup {
            ground.apply(object).await?;
        }
        ground.rest(pace).await;
        Ok(Self {
            snapshot: ground.server.snapshot(),
            authority,
            serving,
            pods: scenario.pods,
            pace,
            invariants,
            finally,
        })
    }
}

/// An API server with controllers and a node.
struct Ground {
    server: ApiServer,
    client: Client,
    activity: Activity,
    _running: [Running; 2],
}

impl Ground {
    fn begin(
        snapshot: Option<&Snapshot>,
        hooks: Option<Arc<Edge>>,
        seed: u64,
        pace: Pace,
        pods: Pods,
    ) -> Self {
        let start: Timestamp = START.parse().unwrap_or(Timestamp::UNIX_EPOCH);
        let mut config = Config {
            random: Random::seeded(seed),
            ..Config::default()
        };
        if let Some(edge) = hooks {
            config.hooks = Some(edge);
        }
        let mut environment = Environment::default();
        if pace.is_virtual {
            config.clock = Clock::starting_at(start);
            environment.clock = windlass::testing::Clock::starting_at(start);
            environment.random = windlass::testing::Random::seeded(seed);
        }
        let server = match snapshot {
            Some(snapshot) => ApiServer::starting_from(config, snapshot),
            None => ApiServer::new(config),
        };
        let client = |user: &str, group: &str| {
            let identity = Identity::new(user, ["system:masters".to_owned(), group.to_owned()]);
            Client::new(server.in_process(identity), NAMESPACE)
        };
        let workloads = windlass_workloads::operator(WorkloadsConfig {
            root_ca: None,
            // Nothing is ever written there: the node is a simulated one.
            local_volumes: Some(LocalVolumes {
                folder: "/volumes".into(),
                remove: |_| Ok(()),
            }),
        });
        let soon = if pace.is_virtual {
            Duration::from_secs(1)
        } else {
            Duration::from_millis(5)
        };
        let delays = Delays {
            start: soon,
            ready: match pods {
                Pods::Ready | Pods::Fail => soon,
                Pods::Never => Duration::from_hours(24 * 365),
            },
            stop: soon,
        };
        let mut settings = SimulatedNodeConfig::new("simulated");
        settings.delays = delays;
        let (node, handle) = simulated::operator(settings);
        if pods == Pods::Fail {
            handle.remove_every_image("the explorer lets no container start");
        }
        let running = [
            workloads.start(
                client("system:kube-controller-manager", "system:controllers"),
                environment.clone(),
            ),
            node.start(
                client("system:node:simulated", "system:nodes"),
                environment.clone(),
            ),
        ];
        Self {
            client: client("kubernetes-admin", "system:admins"),
            activity: environment.activity,
            server,
            _running: running,
        }
    }

    /// Whether the controllers have nothing left to do, but for what is far away: a pod that never gets
    /// ready is one that would in a year.
    fn is_idle(&self) -> bool {
        let soon = Instant::now() + SOON;
        let is_far = self.activity.next_due().is_none_or(|due| due > soon);
        is_far && !self.activity.is_busy()
    }

    /// Waits until the controllers have nothing left to do.
    async fn rest(&self, pace: Pace) {
        let limit = Instant::now() + ACCEPTED;
        let mut calm = 0;
        let mut revision = self.server.revision();
        while calm < 10 && Instant::now() < limit {
            sleep(pace.tick).await;
            let now = self.server.revision();
            let is_calm = self.is_idle() && now == revision;
            calm = if is_calm { calm + 1 } else { 0 };
            revision = now;
        }
    }

    /// The objects of a kind in a namespace, as the user sees them.
    async fn api(&self, named: &Named) -> Result<Api<DynamicObject>, String> {
        let (group, version) = named
            .api_version
            .split_once('/')
            .unwrap_or(("", &named.api_version));
        let gvk = GroupVersionKind::gvk(group, version, &named.kind);
        let (resource, capabilities) = self.resource(&gvk).await?;
        Ok(match (&capabilities, &named.namespace) {
            (Scope::Cluster, _) => Api::all_with(self.client.clone(), &resource),
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(self.client.clone(), namespace, &resource)
            }
            (Scope::Namespaced, None) => {
                Api::namespaced_with(self.client.clone(), NAMESPACE, &resource)
            }
        })
    }

    async fn resource(&self, gvk: &GroupVersionKind) -> Result<(ApiResource, Scope), String> {
        let found = kube::discovery::pinned_kind(&self.client, gvk).await;
        let (resource, capabilities) = found.map_err(|error| error.to_string())?;
        Ok((resource, capabilities.scope))
    }

    /// Applies an object; again while its kind is not served yet.
    async fn apply(&self, object: &Value) -> Result<(), Unusable> {
        let Some(named) = crate::scenario::named(object) else {
            return Err(Unusable::Plan(format!(
                "this object has no apiVersion, kind or name: {object}"
            )));
        };
        let limit = Instant::now() + ACCEPTED;
        loop {
            let applied = async {
                let api = self.api(&named).await?;
                let params = PatchParams::apply("windlass-explore").force();
                let mut object = object.clone();
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove("creationTimestamp");
                }
                if let Some(whole) = object.as_object_mut() {
                    whole.remove("status");
                }
                let patched = api
                    .patch(&named.name, &params, &Patch::Apply(&object))
                    .await;
                patched.map(drop).map_err(|error| error.to_string())
            };
            match applied.await {
                Ok(()) => return Ok(()),
                Err(_) if Instant::now() < limit => sleep(Duration::from_millis(50)).await,
                Err(why) => {
                    return Err(Unusable::Refused {
                        what: format!("apply {named}"),
                        why,
                    });
                }
            }
        }
    }
}

/// A run under way.
struct World<'a> {
    base: &'a Base,
    ground: Ground,
    edge: Arc<Edge>,
    subject: &'a Subject,
    life: Option<Life>,
    serving: Option<Serving>,
    folder: TempDir,
    ports: Ports,
    quiet: Duration,
    ends: usize,
    /// When one that has ended is started again.
    again: Option<Instant>,
    /// Whether the operator is to run.
    is_up: bool,
    longest_gap: Duration,
}

/// How a run is played.
#[derive(Clone)]
pub(crate) struct Take<'a> {
    pub(crate) steps: &'a [Step],
    pub(crate) ignore: &'a [String],
    pub(crate) plan: &'a Plan,
    pub(crate) seed: u64,
    /// Whether all steps are played, of a scenario or a part of it.
    pub(crate) expected: Option<&'a Expected>,
    pub(crate) quiet: Duration,
    pub(crate) patience: Duration,
    /// What was found already: one that is like it does not take the whole patience.
    pub(crate) known: &'a [Wrong],
}

impl Base {
    /// Plays a scenario.
    pub(crate) async fn play(&self, subject: &Subject, take: &Take<'_>) -> Result<Run, Unusable> {
        let began = std::time::Instant::now();
        let edge = Arc::new(Edge::new(
            take.plan,
            take.steps.len(),
            self.pace.pause,
            self.invariants.clone(),
        ));
        let ground = Ground::begin(
            Some(&self.snapshot),
            Some(edge.clone()),
            take.seed,
            self.pace,
            self.pods,
        );
        ground.rest(self.pace).await;
        let cannot = machine("serve on loopback");
        let serving = if subject.is_process() {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await;
            let listener = listener.map_err(|error| cannot(&error))?;
            let tls = TlsConfig {
                serving: self.serving.clone(),
                client_ca: self.authority.pem().certificate.clone(),
            };
            let serving = ground.server.serve(listener, &tls);
            Some(serving.map_err(|error| cannot(&error))?)
        } else {
            None
        };
        let cannot = machine("make a folder");
        let mut world = World {
            base: self,
            ground,
            edge,
            subject,
            life: None,
            serving,
            folder: tempfile::tempdir().map_err(|error| cannot(&error))?,
            ports: Ports::default(),
            quiet: take.quiet,
            ends: 0,
            again: None,
            is_up: true,
            longest_gap: Duration::ZERO,
        };
        let mut run = Run::default();
        let played = world.play(take, &mut run).await;
        if let Some(mut life) = world.life.take() {
            life.kill().await;
        }
        run.records = world.edge.records();
        run.deleted = world.edge.deleted();
        run.races = world.edge.races();
        let stale = take
            .plan
            .0
            .iter()
            .any(|fault| fault.act == Act::StaleRestart);
        run.complete =
            world.edge.not_reached().is_empty() && (!stale || world.edge.past_was_read());
        run.took = began.elapsed();
        run.longest_gap = world.longest_gap;
        run.reads_any_version = world.edge.reads_any_version();
        if let Some(serving) = world.serving.take() {
            serving.stop().await;
        }
        played.map(|()| run)
    }
}

impl World<'_> {
    async fn play(&mut self, take: &Take<'_>, run: &mut Run) -> Result<(), Unusable> {
        for number in 0..=take.steps.len() {
            let step = number
                .checked_sub(1)
                .and_then(|index| take.steps.get(index));
            let what = step.map_or("the operator starts".to_owned(), ToString::to_string);
            let act = self.edge.begin_step(number, what);
            if act == Some(Act::Down) {
                self.kill().await;
                self.is_up = false;
            }
            match step {
                None => self.start()?,
                Some(step) => self.step(step).await?,
            }
            let mut settled = self.settle().await?;
            if act == Some(Act::Down) && settled.is_none() {
                self.start()?;
                self.is_up = true;
                settled = self.settle().await?;
            }
            let mut writes_at_rest = None;
            if act == Some(Act::Restart) && settled.is_none() {
                let before = self.edge.records().len();
                self.kill().await;
                self.start()?;
                settled = self.settle().await?;
                let records = self.edge.records();
                writes_at_rest = take
                    .expected
                    .and_then(|expected| writes(&records[before..], expected));
            }
            if let Some(wrong) = settled.or_else(|| self.broken_now()) {
                run.wrong = Some((number, wrong));
                return Ok(());
            }
            let is_holding = self.edge.is_holding();
            let state = self.edge.state(take.ignore);
            run.states.push((!is_holding).then(|| state.clone()));
            let Some(expected) = take.expected.filter(|_| !is_holding) else {
                continue;
            };
            let reference = expected.states.get(number).and_then(Option::as_ref);
            if let Some(lost) = self.lost(expected, reference) {
                run.wrong = Some((number, Wrong::Deleted(lost)));
                return Ok(());
            }
            if let Some(reference) = reference {
                let differences = self.differences(take, expected, reference).await?;
                if !differences.is_empty() {
                    run.wrong = Some((number, Wrong::of(differences)));
                    return Ok(());
                }
            }
            if let Some(what) = writes_at_rest {
                run.wrong = Some((number, Wrong::WritesAtRest(what)));
                return Ok(());
            }
        }
        Ok(())
    }

    /// What differs for good.
    async fn differences(
        &mut self,
        take: &Take<'_>,
        expected: &Expected,
        reference: &State,
    ) -> Result<Vec<Difference>, Unusable> {
        let began = Instant::now();
        loop {
            let state = self.edge.state(take.ignore);
            let differences = reference.differences(&state, &expected.mask);
            let waited = began.elapsed();
            let is_known = || {
                let wrong = Wrong::of(differences.clone());
                take.known.iter().any(|known| known.is_like(&wrong))
            };
            if differences.is_empty()
                || waited > take.patience
                || (waited > take.patience / KNOWN && is_known())
            {
                return Ok(differences);
            }
            sleep(self.base.pace.tick * 4).await;
            self.tend().await?;
        }
    }

    /// An object of a precious kind that was deleted and should not have been.
    fn lost(&self, expected: &Expected, reference: Option<&State>) -> Option<String> {
        let reference = reference?;
        let deleted = self.edge.deleted().into_iter();
        let mut lost = deleted.filter(|(_, object)| {
            reference.0.contains_key(object)
                && !expected.deleted.contains(object)
                && !expected.mask.objects.contains(object)
        });
        lost.next().map(|(_, object)| object)
    }

    fn broken_now(&self) -> Option<Wrong> {
        if let Some((name, when)) = self.edge.broken() {
            return Some(Wrong::Broken(name, when));
        }
        let objects = self.edge.objects();
        let mut finally = self.base.finally.iter();
        finally.find_map(|rule| {
            let why = rule.broken(&objects)?;
            Some(Wrong::Broken(
                rule.name.clone(),
                format!("once everything has settled, {why}"),
            ))
        })
    }

    async fn step(&mut self, step: &Step) -> Result<(), Unusable> {
        let refused = |why: String| Unusable::Refused {
            what: step.to_string(),
            why,
        };
        match step {
            Step::Apply(objects) => {
                for object in objects {
                    self.wait_until_gone(object).await?;
                    self.ground.apply(object).await?;
                }
            }
            Step::Patch(named, patch) => {
                let api = self.ground.api(named).await.map_err(refused)?;
                let patched = api
                    .patch(&named.name, &PatchParams::default(), &Patch::Merge(patch))
                    .await;
                patched.map_err(|error| refused(error.to_string()))?;
            }
            Step::Delete(named) => {
                let api = self.ground.api(named).await.map_err(refused)?;
                match api.delete(&named.name, &DeleteParams::default()).await {
                    Ok(_) => {}
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    Err(error) => return Err(refused(error.to_string())),
                }
            }
            Step::Wait(named, expression) => {
                let limit = Instant::now() + self.base.pace.limit;
                loop {
                    let api = self.ground.api(named).await.map_err(refused)?;
                    let found = api.get_opt(&named.name).await;
                    let found = found.map_err(|error| refused(error.to_string()))?;
                    let value = found.map_or(Value::Null, |found| json!(found));
                    if invariant::holds_for(expression, &value)
                        .map_err(|why| refused(why.to_string()))?
                    {
                        return Ok(());
                    }
                    if Instant::now() > limit {
                        return Err(refused(format!(
                            "it did not become so within {:?}",
                            self.base.pace.limit
                        )));
                    }
                    sleep(self.base.pace.tick).await;
                    self.tend().await?;
                }
            }
            Step::Advance(time) => {
                let until = Instant::now() + *time;
                while Instant::now() < until {
                    sleep(self.base.pace.tick).await;
                    self.tend().await?;
                }
            }
            Step::Operator(Power::Down) => {
                self.kill().await;
                self.is_up = false;
            }
            Step::Operator(Power::Up) => {
                self.start()?;
                self.is_up = true;
            }
        }
        Ok(())
    }

    /// Waits for the end of an object that is being deleted: what is applied is meant to be another.
    async fn wait_until_gone(&mut self, object: &Value) -> Result<(), Unusable> {
        let Some(named) = crate::scenario::named(object) else {
            return Ok(());
        };
        let limit = Instant::now() + self.base.pace.limit / 4;
        while Instant::now() < limit {
            let Ok(api) = self.ground.api(&named).await else {
                return Ok(());
            };
            let found = api.get_opt(&named.name).await.ok().flatten();
            if found.is_none_or(|found| found.metadata.deletion_timestamp.is_none()) {
                return Ok(());
            }
            self.edge.let_go();
            sleep(self.base.pace.tick).await;
            self.tend().await?;
        }
        Ok(())
    }

    fn start(&mut self) -> Result<(), Unusable> {
        let number = self.edge.born();
        let user = user(number);
        self.again = None;
        self.life = Some(match &self.subject.0 {
            Kind::Process(template) => {
                let kubeconfig = self.kubeconfig(&user)?;
                let started =
                    Process::start(template, self.folder.path(), &kubeconfig, &mut self.ports);
                let program = template.words.first().cloned().unwrap_or_default();
                let started = started.map_err(|error| Unusable::Machine {
                    what: "start the operator",
                    why: format!("{program}: {error}"),
                })?;
                Life::Process(Box::new(started))
            }
            Kind::Function(function) => {
                let identity = Identity::new(user, ["system:masters".to_owned()]);
                let client = Client::new(self.ground.server.in_process(identity), NAMESPACE);
                Life::Function(tokio::spawn(function(client)))
            }
        });
        Ok(())
    }

    /// A kubeconfig for the operator in this life.
    fn kubeconfig(&self, user: &str) -> Result<PathBuf, Unusable> {
        let cannot = machine("write a kubeconfig");
        let made = self.base.authority.client(user, "system:masters");
        let made = made.map_err(|error| cannot(&error))?;
        let address = self.serving.as_ref().map(|serving| serving.address);
        let server = address
            .map(|address| format!("https://{address}"))
            .unwrap_or_default();
        let base64 = |text: &str| {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.encode(text)
        };
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "explore", "cluster": {
                "server": server,
                "certificate-authority-data": base64(&self.base.authority.pem().certificate),
            }}],
            "users": [{"name": "operator", "user": {
                "client-certificate-data": base64(&made.certificate),
                "client-key-data": base64(&made.key),
            }}],
            "contexts": [{"name": "explore", "context": {
                "cluster": "explore", "user": "operator", "namespace": NAMESPACE,
            }}],
            "current-context": "explore",
        });
        let path = self.folder.path().join("kubeconfig");
        fs::write(&path, config.to_string()).map_err(|error| cannot(&error))?;
        Ok(path)
    }

    /// Kills the operator, and lets its leases be over: they would be, in time.
    async fn kill(&mut self) {
        self.edge.died(None);
        if let Some(mut life) = self.life.take() {
            life.kill().await;
        }
        for (resource, namespace, name) in self.edge.locks() {
            let (api_version, kind) = match resource.as_str() {
                "leases.coordination.k8s.io" => ("coordination.k8s.io/v1", "Lease"),
                "configmaps" => ("v1", "ConfigMap"),
                _ => ("v1", "Endpoints"),
            };
            let named = Named {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                name: name.clone(),
                namespace: Some(namespace),
            };
            if let Ok(api) = self.ground.api(&named).await {
                let _ = api.delete(&name, &DeleteParams::default()).await;
            }
        }
    }

    /// Does what the plan asks for, and starts an operator again that has ended.
    async fn tend(&mut self) -> Result<Option<Wrong>, Unusable> {
        if self.edge.is_to_be_killed() {
            self.kill().await;
            self.start()?;
            return Ok(None);
        }
        if let Some(life) = &mut self.life
            && let Some(why) = life.ended().await
        {
            self.life = None;
            self.ends += 1;
            self.edge.died(Some(why.clone()));
            let panicked = ["panic:", "panicked", "goroutine "]
                .iter()
                .any(|text| why.contains(text));
            if panicked || self.ends >= RESTARTS {
                return Ok(Some(Wrong::Crashed(why)));
            }
            self.again = Some(Instant::now() + self.base.pace.pause);
        }
        if self.again.is_some_and(|again| Instant::now() >= again) {
            // Its lease would be over in time, too.
            self.kill().await;
            self.start()?;
        }
        Ok(None)
    }

    /// Waits until nothing is left to do. Answers what is wrong, if that does not happen.
    async fn settle(&mut self) -> Result<Option<Wrong>, Unusable> {
        let pace = self.base.pace;
        let mut limit = Instant::now() + pace.limit;
        // What was seen to be calm, at every tick: on a busy machine a tick can be late.
        let (mut calm, mut silent, mut last) = (Duration::ZERO, Duration::ZERO, Instant::now());
        loop {
            sleep(pace.tick).await;
            if let Some(wrong) = self.tend().await? {
                return Ok(Some(wrong));
            }
            let step = last.elapsed();
            last = Instant::now();
            let passed = step.min(pace.tick * 3);
            let is_busy = self.life.as_mut().is_some_and(Life::is_busy);
            let has_spoken = self.life.is_none() || self.edge.has_spoken();
            let is_silent = self.edge.still_for().is_some_and(|still| still >= step)
                && self.again.is_none()
                && self.ground.is_idle();
            silent = if is_silent {
                silent + passed
            } else {
                Duration::ZERO
            };
            calm = if is_silent && !is_busy {
                calm + passed
            } else {
                Duration::ZERO
            };
            // One that goes on asking for the same is never calm; one that never asks is not waited for.
            let is_still = if has_spoken {
                calm >= self.quiet || silent >= self.quiet * 3
            } else {
                silent >= pace.limit / 6
            };
            if is_still {
                match self.edge.settled() {
                    None => {
                        self.longest_gap = self.longest_gap.max(self.edge.longest_gap());
                        return Ok(None);
                    }
                    Some(Released::Watch) => {}
                    Some(Released::Restart) => {
                        self.kill().await;
                        self.start()?;
                    }
                }
                limit = Instant::now() + pace.limit;
                (calm, silent) = (Duration::ZERO, Duration::ZERO);
            }
            if Instant::now() > limit {
                return Ok(Some(self.restless()));
            }
        }
    }

    fn restless(&self) -> Wrong {
        let records = self.edge.records();
        let writes = records
            .iter()
            .rev()
            .filter_map(|record| match &record.happened {
                Happened::Write { request, code, .. } => Some(format!("{request} ({code})")),
                _ => None,
            });
        let last: Vec<String> = writes.take(5).collect();
        let waits = self.ground.activity.describe();
        let why = if last.is_empty() {
            format!("the controllers of the cluster do not settle: {waits:?}")
        } else {
            format!(
                "still writing after {:?}; latest first:\n{}",
                self.base.pace.limit,
                last.join("\n")
            )
        };
        Wrong::Restless(why)
    }
}

/// What a restart at rest has changed.
fn writes(records: &[Record], expected: &Expected) -> Option<String> {
    let changed = records.iter().filter_map(|record| {
        let Happened::Write {
            request, changes, ..
        } = &record.happened
        else {
            return None;
        };
        if expected.at_start.contains(request) {
            return None;
        }
        let change = changes.iter().find(|change| {
            let parse =
                |bytes: &bytes::Bytes| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
            match &change.before {
                None => true,
                Some(_) if change.kind == windlass_apiserver::hooks::EventKind::Deleted => true,
                Some(before) => {
                    let fields = changed_fields(&parse(before), &parse(&change.after));
                    fields.iter().any(|field| {
                        !is_fleeting(field) && !is_masked(expected, &change.object, field)
                    })
                }
            }
        })?;
        Some(format!("{request}: {}", change.object))
    });
    let changed: Vec<String> = changed.take(5).collect();
    (!changed.is_empty()).then(|| changed.join("\n"))
}

fn is_masked(expected: &Expected, object: &str, field: &str) -> bool {
    expected.mask.objects.contains(object)
        || expected
            .mask
            .fields
            .contains(&(object.to_owned(), field.to_owned()))
}

/// Whether a field says when something was done, and no more.
pub(crate) fn is_fleeting(field: &str) -> bool {
    let last = field.rsplit(['.', '[']).next().unwrap_or(field);
    let last = last.trim_end_matches(']');
    ["Time", "Timestamp", "At", "-time"]
        .iter()
        .any(|end| last.ends_with(end))
}
