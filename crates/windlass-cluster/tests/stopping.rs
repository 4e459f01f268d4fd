//! How an operator's process ends: gracefully at the first signal, at once at the second. A program
//! of its own, as `windlass::main` reads the command line.

mod served;

use std::io::{BufRead as _, BufReader};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

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
/// How long a graceful end may take before it is forced.
const GRACE: Duration = Duration::from_secs(30);

/// Marks what it has seen; of objects called `endless` it is never done.
struct Marker {
    maps: Writes<ConfigMap>,
}

impl Reconciler for Marker {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Action> {
        let patch = json!({"metadata": {"annotations": {"seen": "yes"}}});
        self.maps.patch(ctx, map, patch).await?;
        if map.metadata.name.as_deref() == Some("endless") {
            std::future::pending::<()>().await;
        }
        Ok(Action::done())
    }
}

fn marker() -> Operator {
    let declare = |declare: &mut Declare<ConfigMap>| Marker {
        maps: declare.writes(Access::to([Verb::Patch])),
    };
    Operator::new("marker").controller(Controller::of_existing().reconciler(declare))
}

fn main() -> ExitCode {
    if std::env::var_os(CHILD).is_some() {
        return windlass::main(marker);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        a_signal_lets_nothing_under_way_end_at_once().await;
        a_second_signal_ends_what_the_first_waits_for().await;
    });
    ExitCode::SUCCESS
}

/// The operator's process, once it has seen an object of this name; and its log.
async fn working_on(name: &str, served: &Served) -> (Process, impl Iterator<Item = String>) {
    let mut process = Process::this_program(&served.kubeconfig("operator"), |command| {
        command.arg("run").env(CHILD, "1").stderr(Stdio::piped());
    });
    let log = BufReader::new(process.0.stderr.take().unwrap()).lines();
    let maps: Api<ConfigMap> = Api::namespaced(served.client(), "default");
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    maps.create(&PostParams::default(), &map).await.unwrap();
    until("the reconcile", || async {
        let map = maps.get(name).await.unwrap();
        map.metadata.annotations.is_some()
    })
    .await;
    (process, log.map_while(std::io::Result::ok))
}

async fn a_signal_lets_nothing_under_way_end_at_once() {
    let served = Served::start(None).await;
    let (mut process, log) = working_on("quick", &served).await;
    let signalled = Instant::now();
    process.signal("-TERM");
    assert!(process.0.wait().unwrap().success());
    assert!(signalled.elapsed() < GRACE, "{:?}", signalled.elapsed());
    assert!(log.into_iter().any(|line| line.contains("stopping")));
    println!("ended {:?} after a signal", signalled.elapsed());
}

async fn a_second_signal_ends_what_the_first_waits_for() {
    let served = Served::start(None).await;
    let (mut process, mut log) = working_on("endless", &served).await;
    let signalled = Instant::now();
    process.signal("-TERM");
    // It says that it waits, and for what.
    assert!(log.any(|line| line.contains("stopping; a second signal ends it at once")));
    assert!(!process.has_ended(), "it did not wait for the reconcile");
    process.signal("-TERM");
    process.0.wait().unwrap();
    assert!(signalled.elapsed() < GRACE, "{:?}", signalled.elapsed());
    println!("ended {:?} after two signals", signalled.elapsed());
}
