//! The weather: which trouble comes when, what changes meanwhile, and what is seen of it.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{ConfigMap, Secret, ServiceAccount},
    rbac::v1::ClusterRoleBinding,
};
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tokio::time::sleep;
use windlass::testing::Random;

use crate::{
    CHILD, NAME,
    edge::{Edge, Sent, Trouble},
    operator::Supervised,
    proxy::Proxy,
    report::{Report, Sample},
    served::Process,
};

/// How long anything may take that must come in the end.
const PATIENCE: Duration = Duration::from_mins(3);
/// A silence lasts until it is noticed, but no longer than that.
const SILENCE: Duration = Duration::from_secs(75);
/// The lease of an operator runs out so long after it was renewed.
const LEASE: Duration = Duration::from_secs(15);

/// The API server, in a process that can be killed.
struct Server {
    folder: PathBuf,
    address: SocketAddr,
    process: Process,
}

impl Server {
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("windlass-weather-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let process = Self::spawn(&folder, address);
        Self {
            folder,
            address,
            process,
        }
    }

    fn spawn(folder: &Path, address: SocketAddr) -> Process {
        Process::this_program(&folder.join("kubeconfig"), |command| {
            command
                .env(CHILD, "server")
                .env("DATA", folder)
                .env("ADDRESS", address.to_string());
        })
    }

    /// Killed, and started again with what it had stored.
    fn restart(&mut self) {
        let _ = self.process.0.kill();
        let _ = self.process.0.wait();
        self.process = Self::spawn(&self.folder, self.address);
    }

    async fn kubeconfig(&self) -> Kubeconfig {
        let path = self.folder.join("kubeconfig");
        let begun = Instant::now();
        while !path.exists() {
            assert!(begun.elapsed() < PATIENCE, "the API server does not start");
            sleep(Duration::from_millis(50)).await;
        }
        Kubeconfig::read_from(path).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn config(kubeconfig: Kubeconfig) -> Config {
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.unwrap()
}

/// Makes the operator's account; answers its token.
async fn account(client: &Client) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let account = from(json!({ "metadata": { "name": NAME } }));
    let params = PostParams::default();
    accounts.create(&params, &account).await.unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let binding = from(json!({
        "metadata": { "name": NAME },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
        },
        "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": "default" }],
    }));
    bindings.create(&params, &binding).await.unwrap();
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(24 * 3600),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let made = accounts.create_token_request(NAME, &params, &request).await;
    made.unwrap().status.unwrap().token.unwrap()
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Everything that is looked at.
struct Sky {
    admin: Client,
    server: Server,
    edge: Edge,
    proxy: Proxy,
    operator: Supervised,
    random: Random,
    /// The notes that there should be, by the names of Secrets.
    notes: BTreeMap<String, String>,
    /// Secrets that were deleted: to be reported as gone.
    deleted: Vec<String>,
    made: usize,
    begun: Instant,
    report: Report,
    /// How often watches failed, as each process counts it.
    failures: BTreeMap<u32, f64>,
}

/// Plays so long, and tells what was seen.
pub(crate) async fn play(time: Duration) -> Report {
    let server = Server::start();
    let kubeconfig = server.kubeconfig().await;
    let admin = Client::try_from(config(kubeconfig.clone()).await).unwrap();
    let token = account(&admin).await;
    // To the API server without an identity: the requests bring the operator's.
    let mut upstream = config(kubeconfig).await;
    upstream.auth_info = kube::config::AuthInfo::default();
    upstream.default_retry = false;
    let edge = Edge::new(Client::try_from(upstream).unwrap());
    let proxy = Proxy::start(edge.clone()).await;
    let file = server.folder.join("operator.kubeconfig");
    std::fs::write(&file, kubeconfig_of(&server.folder, &proxy, &token)).unwrap();
    let mut sky = Sky {
        admin,
        server,
        edge,
        proxy,
        operator: Supervised::start(file),
        random: Random::seeded(1),
        notes: BTreeMap::new(),
        deleted: Vec::new(),
        made: 0,
        begun: Instant::now(),
        report: Report::default(),
        failures: BTreeMap::new(),
    };
    sky.until_well().await;
    println!("ready after {:?}", sky.begun.elapsed());
    let begun = Instant::now();
    // The lease is lost in the first spells alone, so that one process lives for long.
    let mut nth = 0;
    while begun.elapsed() < time || nth < SPELLS.len() {
        let spell = SPELLS[nth % SPELLS.len()];
        if spell != Spell::Silence || nth < SPELLS.len() {
            sky.spell(spell).await;
        }
        nth += 1;
        sky.pass(Duration::from_secs(10), true).await;
    }
    sky.end().await
}

fn kubeconfig_of(folder: &Path, proxy: &Proxy, token: &str) -> String {
    let ca = folder.join("proxy.crt");
    std::fs::write(&ca, &proxy.ca).unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {
            "server": format!("https://{}", proxy.address), "certificate-authority": ca,
        }}],
        "users": [{"name": "test", "user": { "token": token }}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    });
    config.to_string()
}

/// A sort of bad weather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spell {
    /// Nothing is answered, the lease neither: the operator's process ends.
    Silence,
    /// Half of the requests are answered with errors.
    Errors,
    /// Nothing but the lease is answered, and no watch says anything any more.
    SilentWatches,
    /// Half of the answers are lost, break off, stop, or never begin.
    HalfAnswers,
    /// The API server is killed, and started again.
    Restart,
    /// Everything but the lease is answered with 404.
    NotFound,
    /// Connections are cut and refused.
    Refused,
    /// Watches are accepted, and say nothing from then on.
    SilentBodies,
}

const SPELLS: [Spell; 8] = [
    Spell::Silence,
    Spell::Errors,
    Spell::SilentWatches,
    Spell::HalfAnswers,
    Spell::Restart,
    Spell::NotFound,
    Spell::Refused,
    Spell::SilentBodies,
];

impl Sky {
    async fn spell(&mut self, spell: Spell) {
        println!("{:>5} s: {spell:?}", self.begun.elapsed().as_secs());
        let random = Arc::new(Mutex::new(Random::seeded(self.random.bits())));
        let half = move |of: fn(u64) -> Trouble| {
            let random = random.clone();
            move |_: &Sent| {
                let random = random.lock().unwrap();
                match random.below(2) {
                    0 => Trouble::None,
                    _ => of(random.bits()),
                }
            }
        };
        self.edge.spare_lease(spell != Spell::Silence);
        match spell {
            Spell::Errors => self.edge.judge(half(|bits| {
                let codes = [404, 429, 500, 503];
                Trouble::Status(codes[usize::try_from(bits % 4).unwrap()])
            })),
            Spell::HalfAnswers => self.edge.judge(half(|bits| match bits % 5 {
                0 => Trouble::Cut,
                1 => Trouble::AnswerLost,
                2 => Trouble::HalfBody,
                3 => Trouble::SilentBody,
                _ => Trouble::Unanswered,
            })),
            Spell::NotFound => {
                self.edge.judge(|_| Trouble::Status(404));
                self.edge.cut_answers();
            }
            Spell::SilentWatches => {
                self.edge.judge(|_| Trouble::Unanswered);
                self.edge.stall_answers();
            }
            Spell::SilentBodies => {
                self.edge.judge(|_| Trouble::SilentBody);
                self.edge.stall_answers();
            }
            Spell::Silence => {
                self.edge.judge(|_| Trouble::Unanswered);
                self.edge.stall_answers();
            }
            Spell::Restart => self.server.restart(),
            Spell::Refused => {
                self.proxy.cut();
                self.proxy.refuse(true);
            }
        }
        match spell {
            Spell::SilentWatches | Spell::SilentBodies | Spell::Silence => {
                let noticed = self.until_noticed().await;
                self.report.silences.push(noticed);
            }
            // Less than the operator waits for its lease.
            Spell::Refused => self.pass(Duration::from_secs(4), false).await,
            _ => self.pass(Duration::from_secs(20), true).await,
        }
        self.edge.clear();
        self.proxy.refuse(false);
    }

    /// Waits until `/readyz` says that something is wrong; how long that took.
    async fn until_noticed(&mut self) -> Option<Duration> {
        let begun = Instant::now();
        while begun.elapsed() < SILENCE {
            self.pass(Duration::from_secs(1), false).await;
            if !self.operator.is_ready().await {
                return Some(begun.elapsed());
            }
        }
        None
    }

    /// Lets time pass: looks at the operator each second, and changes things now and then.
    async fn pass(&mut self, time: Duration, changes: bool) {
        let end = Instant::now() + time;
        loop {
            self.operator.look_after();
            self.look().await;
            if changes && self.random.below(3) == 0 {
                self.change().await;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            sleep(left.min(Duration::from_secs(1))).await;
        }
    }

    async fn look(&mut self) {
        let Some((memory, files)) = self.operator.size() else {
            return;
        };
        if let Some(failures) = self.operator.metric("windlass_watch_failures_total").await {
            self.failures.insert(self.operator.id(), failures);
        }
        let sample = Sample {
            at: self.begun.elapsed(),
            process: self.operator.id(),
            memory,
            files,
            ready: self.operator.is_ready().await,
            events: self.operator.metric("windlass_events_waiting").await,
        };
        self.report.samples.push(sample);
    }

    /// Creates, changes or deletes a Secret, or tampers with a copy.
    async fn change(&mut self) {
        let names: Vec<String> = self.notes.keys().cloned().collect();
        let some = names.get(usize::try_from(self.random.below(names.len() as u64)).unwrap());
        let note = format!("note {}", self.random.below(1000));
        match (self.random.below(4), some) {
            (0, Some(name)) => {
                let annotated = json!({"metadata": {"annotations": {"note": note}}});
                self.notes.insert(name.clone(), note);
                self.patch::<Secret>(name, &annotated).await;
            }
            (1, Some(name)) if names.len() > 20 => {
                self.notes.remove(name);
                self.deleted.push(name.clone());
                let secrets: Api<Secret> = Api::namespaced(self.admin.clone(), "default");
                let params = DeleteParams::default();
                self.insist(|| secrets.delete(name, &params)).await;
            }
            (2, Some(name)) => {
                let drift = json!({"data": {"note": "tampered with"}});
                self.patch::<ConfigMap>(name, &drift).await;
            }
            _ => {
                self.made += 1;
                let name = format!("secret-{}", self.made);
                let secret: Secret = from(json!({
                    "metadata": { "name": name, "annotations": { "note": note } },
                }));
                self.notes.insert(name, note);
                let secrets: Api<Secret> = Api::namespaced(self.admin.clone(), "default");
                let params = PostParams::default();
                self.insist(|| secrets.create(&params, &secret)).await;
            }
        }
    }

    async fn patch<K>(&self, name: &str, patch: &Value)
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.admin.clone(), "default");
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.insist(|| api.patch(name, &params, &patch)).await;
    }

    /// The API server may just be down; an object may be there already, or not yet.
    async fn insist<T, F: Future<Output = kube::Result<T>>>(&self, request: impl Fn() -> F) {
        let begun = Instant::now();
        loop {
            match request().await {
                Ok(_) => return,
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return,
                Err(error) => {
                    assert!(begun.elapsed() < PATIENCE, "{error}");
                    sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }

    /// What is not as it should be now.
    async fn differences(&self) -> Vec<String> {
        let maps: Api<ConfigMap> = Api::namespaced(self.admin.clone(), "default");
        let Ok(maps) = maps.list(&ListParams::default()).await else {
            return vec!["the API server does not answer".to_owned()];
        };
        let owned = maps.items.into_iter();
        let owned = owned.filter(|map| !map.owner_references().is_empty());
        let note = |map: &ConfigMap| map.data.as_ref()?.get("note").cloned();
        let copies: BTreeMap<String, String> = owned
            .map(|map| (map.name_any(), note(&map).unwrap_or_default()))
            .collect();
        let names = copies.keys().chain(self.notes.keys());
        let differ = names.filter(|name| copies.get(*name) != self.notes.get(*name));
        let differ: std::collections::BTreeSet<String> = differ.cloned().collect();
        differ.into_iter().collect()
    }

    /// Waits until it is ready and everything is as it should be, or for too long.
    async fn until_well(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            self.pass(Duration::from_secs(1), false).await;
            if self.operator.is_ready().await && self.differences().await.is_empty() {
                return;
            }
        }
    }

    async fn end(mut self) -> Report {
        self.until_well().await;
        self.pass(Duration::from_secs(2), false).await;
        let mut report = std::mem::take(&mut self.report);
        report.differences = self.differences().await;
        report.failures = self.failures.values().sum();
        let gone = self.operator.gone.lock().unwrap().clone();
        report.wrong = gone
            .into_iter()
            .filter(|name| !self.deleted.contains(name))
            .collect();
        let (writes, renewals) = (self.edge.writes(), self.edge.renewals());
        println!("{} writes, {} renewals", writes.len(), renewals.len());
        for write in writes {
            let what = format!("{} {}", write.method, write.path);
            if write.method == http::Method::DELETE {
                report.deletes.push(what.clone());
            }
            let renewed = renewals.iter().rev().find(|at| **at <= write.at);
            // Reviews of its own rights are no writes.
            if !write.path.contains("/selfsubject")
                && renewed.is_none_or(|at| write.at.duration_since(*at) > LEASE)
            {
                report.late.push(what);
            }
        }
        report
    }
}
