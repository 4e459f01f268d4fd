//! A leader that is stopped and resumed, as two real processes over real sockets: what it sends
//! after another has taken over.

mod served;

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Operator, Reconciler, Result,
    handle::{Access, Verb, Writes},
    run::{Launch, LeaderElection},
    testing::Environment,
};
use windlass_apiserver::Identity;
use windlass_apiserver::hooks::{HookFuture, Hooks, Outcome, Reply};
use windlass_apiserver::http::ResourceRequest;

use served::{Process, Served, until};

/// How many objects a replica works on at once.
const WORKERS: usize = 4;
const OBJECTS: usize = 150;

/// Writes its name on every secret, whoever wrote before.
struct Signer {
    secrets: Writes<Secret>,
    name: String,
}

impl Reconciler for Signer {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        if secret.annotations().get("by") != Some(&self.name) {
            let patch = json!({"metadata": {"annotations": {"by": self.name}}});
            self.secrets.patch(ctx, secret, patch).await?;
        }
        Ok(Action::done())
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
    let (Ok(path), Ok(name)) = (std::env::var("KUBECONFIG"), std::env::var("REPLICA")) else {
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
    ) -> HookFuture<'a, Reply> {
        if request.verb.writes() && request.resource != "leases" {
            self.0.lock().unwrap().push(who.user.clone());
        }
        // Slow enough that there is always something under way.
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Reply::Send
        })
    }
}

fn replica_of(name: &str, served: &Served) -> Process {
    Process::this_program(&served.kubeconfig(name), |command| {
        command
            .args(["--exact", "replica", "--ignored", "--nocapture"])
            .env("REPLICA", name)
            .stdout(Stdio::null());
    })
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
    let served = Served::start(Some(seen.clone())).await;
    let client = served.client();
    let first = replica_of("a", &served);
    until("the first leads", || async {
        holder(&client).await.as_deref() == Some("a")
    })
    .await;
    let second = replica_of("b", &served);
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
    until("its end", || std::future::ready(first.has_ended())).await;
    let late = seen.by("a") - before;
    println!("{late} writes of the resumed leader landed, of at most {WORKERS}");
    assert!(late <= WORKERS, "{late} writes after the resume");
    drop(second);
}
