//! A failure shows its seed, and the seed replays it; and how many tests run in a second.

use std::process::Command;
use std::time::Instant;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use windlass_cluster::TestCluster;

use crate::operators::{diligent, wish};

/// Fails with what only the seed decides.
#[windlass_cluster::test]
#[ignore = "fails on purpose: the test below runs it"]
async fn fails_by_its_seed(cluster: TestCluster) {
    let map = ConfigMap {
        metadata: ObjectMeta {
            generate_name: Some("random-".to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    let name = cluster.create(map).await.metadata.name;
    panic!("it was {}", name.unwrap_or_default());
}

#[test]
fn a_failure_prints_its_seed_which_replays_it() {
    let run = |seed: &str| {
        let program = std::env::current_exe().unwrap();
        let output = Command::new(program)
            .args(["--ignored", "--exact", "seed::fails_by_its_seed"])
            .env("WINDLASS_SEED", seed)
            .env("RUST_BACKTRACE", "0")
            .output()
            .unwrap();
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = |of: &str| {
            let line = text.lines().find(|line| line.starts_with(of));
            line.unwrap_or_else(|| panic!("no {of} in {text}"))
                .to_owned()
        };
        (line("seed "), line("it was "))
    };
    let (seed, first) = run("77");
    assert_eq!(seed, "seed 77 (set WINDLASS_SEED to try another)");
    assert_eq!(run("77").1, first);
    assert_ne!(run("78").1, first);
}

/// `make bench-tests` prints the figure.
#[test]
#[ignore = "a figure, not a verdict"]
fn tests_per_second() {
    const TESTS: u32 = 200;
    let begun = Instant::now();
    for _ in 0..TESTS {
        windlass_cluster::private::run(|cluster| async move {
            cluster.start(diligent()).await;
            cluster.create(wish("one")).await;
            cluster.settle().await;
            assert_eq!(cluster.list::<ConfigMap>().await.len(), 3);
        });
    }
    let rate = f64::from(TESTS) / begun.elapsed().as_secs_f64();
    println!("{rate:.0} tests of a small operator per second, on one core");
}
