//! Reconciles that block every thread they can get: the operator keeps its lease, answers probes,
//! says what blocks, and ends when it is told to. A program of its own, as `windlass::main` reads
//! the command line.

mod served;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{ExitCode, Stdio};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::json;
use windlass::{
    Action, Context, Controller, Declare, Operator, Reconciler, Result,
    handle::{Access, Verb, Writes},
};

use served::{Process, Served, until};

/// Set for the process that is the operator.
const CHILD: &str = "WINDLASS_TEST_OPERATOR";

/// Marks what it has seen, and never gives its thread back.
struct Blocker {
    maps: Writes<ConfigMap>,
}

impl Reconciler for Blocker {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Action> {
        let patch = json!({"metadata": {"annotations": {"seen": "yes"}}});
        self.maps.patch(ctx, map, patch).await?;
        loop {
            std::thread::park();
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

fn blocker() -> Operator {
    let declare = |declare: &mut Declare<ConfigMap>| Blocker {
        maps: declare.writes(Access::to([Verb::Patch])),
    };
    let controller = Controller::of_existing()
        .concurrency(cores())
        .reconciler(declare);
    Operator::new("blocker").controller(controller)
}

fn main() -> ExitCode {
    if std::env::var_os(CHILD).is_some() {
        return windlass::main(blocker);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(a_reconcile_that_blocks_its_thread_does_not_cost_the_lease());
    ExitCode::SUCCESS
}

async fn a_reconcile_that_blocks_its_thread_does_not_cost_the_lease() {
    let served = Served::start(None).await;
    let maps: Api<ConfigMap> = Api::namespaced(served.client(), "default");
    for number in 0..cores() {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("map-{number}"));
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let mut process = Process::this_program(&served.kubeconfig("operator"), |command| {
        command
            .args([
                "run",
                "--leader-elect",
                "--leader-election-namespace=default",
            ])
            .env(CHILD, "1")
            .stderr(Stdio::piped());
    });
    let log = BufReader::new(process.0.stderr.take().unwrap()).lines();
    let mut log = log.map_while(std::io::Result::ok);
    let probes = log.find(|line| line.contains("answering /healthz"));
    let blocked = log.find(|line| line.contains("all threads are blocked"));
    let blocked = blocked.expect("a warning");
    assert!(blocked.contains("configmap default/map-"), "{blocked}");
    println!("{blocked}");
    // It goes on to lead,
    let leases: Api<Lease> = Api::namespaced(served.client(), "default");
    let lease = || async { leases.get("blocker").await.unwrap().spec.unwrap() };
    for _ in 0..2 {
        let before = lease().await;
        assert!(before.holder_identity.is_some(), "{before:?}");
        until("a renewal", || async {
            lease().await.renew_time != before.renew_time
        })
        .await;
    }
    // to answer,
    let probes = probes.expect("probes");
    let (_, address) = probes.split_once("address=").expect("an address");
    let mut stream = TcpStream::connect(address.trim()).expect("a connection");
    let request = b"GET /healthz HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n";
    stream.write_all(request).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // and to listen: at the first signal it waits for the reconciles, at the second it ends.
    process.signal("-TERM");
    assert!(log.any(|line| line.contains("stopping; a second signal ends it at once")));
    assert!(!process.has_ended(), "it did not wait for the reconciles");
    process.signal("-TERM");
    process.0.wait().unwrap();
}
