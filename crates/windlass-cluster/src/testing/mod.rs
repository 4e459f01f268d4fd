//! [`TestCluster`]: a cluster in one process, under virtual time.

mod cluster;
mod dry_run;
mod explore;
mod faults;
mod outside;
mod pristine;
mod replay;
mod replica;
mod rights;
mod stage;
mod started;
mod state;

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Runtime;

pub use cluster::TestCluster;
pub use explore::{Exploration, Finding, Report, Wrong};
pub use faults::{Failure, Request};
pub use outside::{Fate, Outside, OutsideCall};
pub use replica::Replica;
pub use stage::{Stage, answered, disturb, manifests_are_current, play};

/// `n` seconds.
pub fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// `n` minutes.
pub fn minutes(n: u64) -> Duration {
    Duration::from_secs(60 * n)
}

/// `n` hours.
pub fn hours(n: u64) -> Duration {
    Duration::from_secs(3600 * n)
}

/// The environment variable that sets the seed of a test, to replay a failure.
const SEED: &str = "WINDLASS_SEED";

/// Runs one test on a fresh cluster, on a runtime whose clock only moves when nobody has anything to do.
///
/// The seed is printed, so that a failure shows it.
pub fn run<F, Fut>(test: F)
where
    F: FnOnce(TestCluster) -> Fut,
    Fut: Future<Output = ()>,
{
    let seed = std::env::var(SEED)
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    println!("seed {seed} (set {SEED} to try another)");
    paused_runtime().block_on(async { test(TestCluster::new(seed).await).await });
}

/// A runtime whose clock only moves when nobody has anything to do.
fn paused_runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.unwrap_or_else(|error| panic!("cannot start a runtime: {error}"))
}
