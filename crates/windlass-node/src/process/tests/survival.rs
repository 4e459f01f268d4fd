//! What is left when the node stops, or is killed.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use windlass::testing::Environment;

use super::bench::{Bench, ProcessRuntime, processes, runtime, script};
use crate::process::clean_up;
use crate::runtime::{Execution, Runtime};
use crate::shim;

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

/// A later life of the node. The former one is still there, but does nothing.
async fn next_life(bench: &Bench) -> ProcessRuntime {
    let next = runtime(&bench.folder);
    next.begin(&Environment::default())
        .await
        .expect("a beginning");
    next
}

#[tokio::test]
async fn the_next_life_goes_on_with_what_the_last_one_left() {
    let mut bench = Bench::new("next-life").await;
    let pod = bench.pod("one", &script("echo up; exec sleep 1000"));
    let address = bench.start(&pod, 0).await;
    bench.started().await;
    bench.line("one").await;
    let before = processes(&pod);
    assert_eq!(before.len(), 1);
    let next = next_life(&bench).await;
    let adopted = next.adopt(uid(&pod), &bench.reports);
    assert_eq!(adopted.len(), 1, "{adopted:?}");
    assert_eq!((adopted[0].run, adopted[0].ended.is_none()), (0, true));
    assert_eq!(processes(&pod), before);
    // The pod keeps its address and its log, and can be talked to and stopped.
    assert_eq!(next.set_up(&pod).await.expect("an address"), address);
    assert!(next.log(uid(&pod), "main", false).is_some());
    let asked = Execution {
        command: vec!["true".into()],
        ..Execution::default()
    };
    let session = next.exec(uid(&pod), "main", asked).await;
    let ended = session.expect("a session").ended.await;
    assert_eq!(ended.expect("an end"), 0);
    next.stop(uid(&pod), "main", Duration::from_mins(1));
    assert_eq!(bench.exited().await.exit_code, 143);
    assert_eq!(processes(&pod), [] as [i32; 0]);
}

#[tokio::test]
async fn the_next_life_knows_what_ended_meanwhile() {
    let mut bench = Bench::new("meanwhile").await;
    let pod = bench.pod("one", &script("echo last words; exit 7"));
    bench.start(&pod, 0).await;
    bench.started().await;
    bench.exited().await;
    let next = next_life(&bench).await;
    let adopted = next.adopt(uid(&pod), &bench.reports);
    let ended = adopted[0].ended.as_ref().expect("an end");
    assert_eq!(ended.exit_code, 7);
    assert_eq!(bench.output("one").await, "last words\n");
    // What is over for good needs no shim.
    next.release(uid(&pod)).await;
    assert!(shim::find(&pod_folder(&bench, &pod)).await.is_none());
    assert!(next.log(uid(&pod), "main", false).is_some());
}

#[tokio::test]
async fn what_no_shim_holds_any_more_is_ended() {
    let mut bench = Bench::new("no-shim").await;
    let pod = bench.pod("one", &script("setsid sleep 1000 & echo up; wait"));
    bench.start(&pod, 0).await;
    bench.started().await;
    bench.line("one").await;
    assert!(processes(&pod).len() >= 2);
    shim::end_by_force(&pod_folder(&bench, &pod)).await;
    let next = next_life(&bench).await;
    assert_eq!(processes(&pod), [] as [i32; 0]);
    assert_eq!(next.adopt(uid(&pod), &bench.reports), []);
    assert_eq!(bench.exited().await.reason, "ContainerStatusUnknown");
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_its_container() {
    let mut bench = Bench::new("left-by-exec").await;
    let pod = bench.pod("one", &script("echo up; exec sleep 1000"));
    bench.start(&pod, 0).await;
    bench.started().await;
    bench.line("one").await;
    let asked = Execution {
        command: ["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &"]
            .map(str::to_owned)
            .to_vec(),
        ..Execution::default()
    };
    let session = bench.runtime.exec(uid(&pod), "main", asked).await;
    let ended = session.expect("a session").ended.await;
    assert_eq!(ended.expect("an end"), 0);
    assert_eq!(processes(&pod).len(), 2);
    bench
        .runtime
        .stop(uid(&pod), "main", Duration::from_mins(1));
    assert_eq!(bench.exited().await.exit_code, 143);
    assert_eq!(processes(&pod), [] as [i32; 0]);
}

fn pod_folder(bench: &Bench, pod: &Pod) -> PathBuf {
    bench.folder.path().join("pods").join(uid(pod))
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
    let late = bench.pod("late", &script("exec sleep 1000"));
    assert!(bench.runtime.set_up(&late).await.is_err());
    assert_eq!(processes(&late), [] as [i32; 0]);
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
