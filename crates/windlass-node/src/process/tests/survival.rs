//! What is left when the node stops, or is killed.

use std::time::Duration;

use windlass::Environment;

use super::bench::{Bench, processes, runtime, script};
use crate::process::clean_up;
use crate::runtime::Runtime;

/// A node that is killed does nothing more, so its processes are all there is; here the runtime
/// that started them stays, and sees them end.
#[tokio::test]
async fn the_next_life_ends_what_the_last_one_left() {
    let mut bench = Bench::new("next-life").await;
    let pod = bench.pod("one", &script("setsid sleep 1000 & echo up; wait"));
    let address = bench.start(&pod, 0).await;
    bench.started().await;
    bench.line("one").await;
    assert!(processes(&pod).len() >= 2);
    let next = runtime(&bench.folder);
    next.begin(&Environment::default())
        .await
        .expect("a beginning");
    assert_eq!(processes(&pod), [] as [i32; 0]);
    assert_eq!(bench.exited().await.exit_code, 137);
    // The pod keeps its address, and its log.
    assert_eq!(next.set_up(&pod).await.expect("an address"), address);
    assert!(
        next.log(pod.metadata.uid.as_deref().unwrap_or(""), "main", false)
            .is_some()
    );
}

#[tokio::test]
async fn whoever_stops_a_dead_cluster_can_clean_up() {
    let mut bench = Bench::new("clean-up").await;
    let pod = bench.pod(
        "one",
        &script("trap '' TERM; echo up; while :; do sleep 0.01; done"),
    );
    bench.start(&pod, 0).await;
    bench.started().await;
    bench.line("one").await;
    clean_up(bench.folder.path()).await.expect("cleaned up");
    assert_eq!(processes(&pod), [] as [i32; 0]);
    assert_eq!(bench.exited().await.exit_code, 137);
}

#[tokio::test]
async fn a_graceful_stop_ends_everything_and_starts_nothing() {
    let mut bench = Bench::new("drain").await;
    let polite = bench.pod("polite", &script("echo up; exec sleep 1000"));
    let deaf = bench.pod(
        "deaf",
        &script("trap '' TERM; echo up; while :; do sleep 0.01; done"),
    );
    for pod in [&polite, &deaf] {
        bench.start(pod, 0).await;
        bench.started().await;
    }
    for name in ["polite", "deaf"] {
        bench.line(name).await;
    }
    bench.runtime.drain(Duration::from_millis(200)).await;
    for pod in [&polite, &deaf] {
        assert_eq!(processes(pod), [] as [i32; 0]);
    }
    bench
        .start(&bench.pod("late", &script("exec sleep 1000")), 0)
        .await;
    assert_eq!(processes(&bench.pod("late", &script(""))), [] as [i32; 0]);
}

#[tokio::test]
async fn a_pod_that_is_gone_leaves_nothing() {
    let mut bench = Bench::new("gone").await;
    let pod = bench.pod("one", &script("echo up; exec sleep 1000"));
    bench.start(&pod, 0).await;
    bench.started().await;
    bench.line("one").await;
    let uid = pod.metadata.uid.as_deref().unwrap_or("");
    bench.runtime.tear_down(uid).await;
    assert_eq!(processes(&pod), [] as [i32; 0]);
    assert!(!bench.folder.path().join("pods").join(uid).exists());
    assert!(bench.runtime.known().expect("a list").is_empty());
}
