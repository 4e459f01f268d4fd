//! An operator's process against the API server of `windlass up`, behind a proxy that does what
//! proxies and networks do: `make bad-weather` plays an hour of it, and looks from outside.
//!
//! A program of its own, as `windlass::main` reads the command line. Without `BAD_WEATHER_SECONDS`
//! it shows that its check can fail, and plays nothing: the same in virtual time is a test of the
//! framework.

#[path = "../framework/edge.rs"]
mod edge;
mod operator;
mod proxy;
mod report;
#[path = "../served/mod.rs"]
#[allow(dead_code, reason = "the API server here is a whole cluster's")]
mod served;
mod sky;

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use windlass_cluster::{Cluster, ClusterConfig};

/// What this process is, if not the one that looks.
const CHILD: &str = "BAD_WEATHER_PROCESS";
/// The operator.
const NAME: &str = "copier";

fn main() -> ExitCode {
    match std::env::var(CHILD).as_deref() {
        Ok("operator") => return windlass::main(operator::operator),
        Ok("server") => return block_on(serve()),
        _ => {}
    }
    report::every_fault_is_complained_about();
    println!("each thing that can be wrong is complained about");
    let Ok(seconds) = std::env::var("BAD_WEATHER_SECONDS") else {
        println!("the hour is played by `make bad-weather`");
        return ExitCode::SUCCESS;
    };
    let seconds = seconds.parse().expect("a number of seconds");
    block_on(play(Duration::from_secs(seconds)))
}

fn block_on(work: impl Future<Output = ExitCode>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(work)
}

/// The API server and its controllers, until the process is killed.
async fn serve() -> ExitCode {
    let path = |name: &str| PathBuf::from(std::env::var_os(name).expect("a path"));
    let address: SocketAddr = std::env::var("ADDRESS").unwrap().parse().unwrap();
    let config = ClusterConfig {
        data_dir: path("DATA"),
        listen: address,
        names: Vec::new(),
        in_memory: false,
        controllers: true,
        node: None,
    };
    let cluster = Cluster::start(config).await.expect("a cluster");
    let kubeconfig = serde_json::to_string(cluster.kubeconfig()).unwrap();
    let (whole, file) = (path("DATA").join("whole"), path("KUBECONFIG"));
    std::fs::write(&whole, kubeconfig).unwrap();
    std::fs::rename(&whole, &file).unwrap();
    std::future::pending().await
}

async fn play(time: Duration) -> ExitCode {
    let report = sky::play(time).await;
    report.print();
    let complaints = report.complaints();
    for complaint in &complaints {
        println!("WRONG: {complaint}");
    }
    if complaints.is_empty() {
        println!("all is well");
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}
