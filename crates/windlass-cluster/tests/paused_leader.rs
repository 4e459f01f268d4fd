//! A leader that is stopped and resumed, as two real processes over real sockets: what it sends
//! after another has taken over.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;
use windlass::{
    Access, Context, Controller, Declare, Environment, Launch, LeaderElection, Next, Operator,
    Reconciler, Result, Verb, Writes,
};
use windlass_apiserver::http::{ResourceRequest, TlsConfig};
use windlass_apiserver::pki::Authority;
use windlass_apiserver::{ApiServer, Config as ServerConfig, Hooks, Identity, Outcome};

/// How many objects a replica works on at once.
const WORKERS: usize = 4;
const OBJECTS: usize = 150;
const PATIENCE: Duration = Duration::from_mins(1);

/// Writes its name on every secret, whoever wrote before.
struct Signer {
    secrets: Writes<Secret>,
    name: String,
}

impl Reconciler for Signer {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Next> {
        if secret.annotations().get("by") != Some(&self.name) {
            let patch = json!({"metadata": {"annotations": {"by": self.name}}});
            self.secrets.patch(ctx, secret, patch).await?;
        }
        Ok(Next::settled())
    }
}

fn signer(name: &str) -> Operator {
    let name = name.to_owned();
    let declare = move |declare: &mut Declare<Secret>| Signer {
        secrets: declare.writes(Access::to([Verb::Patch])),
        name: name.clone(),
    };
    let controller = Controller::of_existing()
        .concurrency(WORKERS)
        .reconciler(declare);
    Operator::new("signer").controller(controller)
}

/// One replica, as a process of its own: ends when it has lost the lease.
#[tokio::test]
#[ignore = "a process that the other test starts"]
async fn replica() {
    let (Ok(path), Ok(name)) = (std::env::var("REPLICA_CONFIG"), std::env::var("REPLICA")) else {
        return;
    };
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    let mut election = LeaderElection::new("default", "signer", name.as_str());
    election.lease = Duration::from_secs(3);
    election.renew = Duration::from_secs(2);
    election.retry = Duration::from_millis(500);
    let launch = Launch {
        leader_election: Some(election),
        ..Launch::default()
    };
    let client = Client::try_from(config).unwrap();
    let running = signer(&name).launch(client, Environment::default(), launch);
    running.lost().await;
}

/// Who wrote what, apart from leases.
#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl Seen {
    fn by(&self, user: &str) -> usize {
        let seen = self.0.lock().unwrap();
        seen.iter().filter(|one| *one == user).count()
    }
}

impl Hooks for Seen {
    fn after<'a>(
        &'a self,
        who: &'a Identity,
        request: &'a ResourceRequest,
        _: Outcome,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        if request.verb.writes() && request.resource != "leases" {
            self.0.lock().unwrap().push(who.user.clone());
        }
        // Slow enough that there is always something under way.
        Box::pin(tokio::time::sleep(Duration::from_millis(5)))
    }
}

/// A child that does not outlive the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn replica(name: &str, config: &Path) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "replica", "--ignored", "--nocapture"])
            .env("REPLICA", name)
            .env("REPLICA_CONFIG", config)
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.unwrap().success());
    }
}

async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn holder(client: &Client) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "default");
    leases
        .get_opt("signer")
        .await
        .unwrap()?
        .spec?
        .holder_identity
}

async fn signed(client: &Client, by: &str) -> usize {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let secrets = secrets.list(&ListParams::default()).await.unwrap();
    let by = by.to_owned();
    let signed = secrets
        .iter()
        .filter(|one| one.annotations().get("by") == Some(&by));
    signed.count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resumed_leader_sends_at_most_what_had_passed_the_check() {
    let seen = Arc::new(Seen::default());
    let server = ApiServer::new(ServerConfig {
        hooks: Some(seen.clone()),
        ..ServerConfig::default()
    });
    let authority = Authority::create().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = TlsConfig {
        serving: authority.server("server", &[address.ip()], &[]).unwrap(),
        client_ca: authority.pem().certificate.clone(),
    };
    let _serving = server.serve(listener, &tls).unwrap();
    let folder = std::env::temp_dir().join(format!("windlass-paused-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let config = |name: &str| {
        let identity = authority.client(name, "system:masters").unwrap();
        let file = |what: &str, text: &str| {
            let path = folder.join(format!("{name}.{what}"));
            std::fs::write(&path, text).unwrap();
            path
        };
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": format!("https://{address}"),
                "certificate-authority": file("ca", &authority.pem().certificate),
            }}],
            "users": [{"name": "test", "user": {
                "client-certificate": file("crt", &identity.certificate),
                "client-key": file("key", &identity.key),
            }}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        file("kubeconfig", &config.to_string())
    };
    let client = Client::new(server.in_process(Identity::admin()), "default");
    let first = Process::replica("a", &config("a"));
    until("the first leads", || async {
        holder(&client).await.as_deref() == Some("a")
    })
    .await;
    let second = Process::replica("b", &config("b"));
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    for number in 0..OBJECTS {
        let mut secret = Secret::default();
        secret.metadata.name = Some(format!("s{number}"));
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
    }
    // In the middle of its work it stops, and somebody else does the rest, and all of it.
    until("some work", || async { seen.by("a") >= 20 }).await;
    first.signal("-STOP");
    until("the second leads", || async {
        holder(&client).await.as_deref() == Some("b")
    })
    .await;
    until("all work", || async {
        signed(&client, "b").await == OBJECTS
    })
    .await;
    let before = seen.by("a");
    assert_eq!(seen.by("b"), OBJECTS);
    first.signal("-CONT");
    let mut first = first;
    until("its end", || {
        let ended = first.0.try_wait().unwrap().is_some();
        std::future::ready(ended)
    })
    .await;
    let late = seen.by("a") - before;
    println!("{late} writes of the resumed leader landed, of at most {WORKERS}");
    assert!(late <= WORKERS, "{late} writes after the resume");
    drop(second);
    let _ = std::fs::remove_dir_all(&folder);
}
