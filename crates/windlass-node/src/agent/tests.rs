//! A pod's worker on a simulated node, with a scripted API server, in virtual time.

mod api;

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::time::Instant;
use windlass::testing::{Activity, Clock, Environment, Random};

use self::api::Server;
use super::worker::Worker;
use super::{Agency, Directory, Identity, Mail, Reports};
use crate::env::{Capacity, Sources};
use crate::simulated::{Delays, SimulatedNode};

struct Stage {
    server: Server,
    node: SimulatedNode,
    reports: Reports,
    environment: Environment,
}

impl Stage {
    /// A pod that has just been bound to the node.
    fn new(spec: &Value) -> Self {
        let base = "2026-01-01T00:00:00Z".parse().expect("a time");
        let environment = Environment {
            clock: Clock::starting_at(base),
            random: Random::seeded(1),
            activity: Activity::default(),
            ..Environment::default()
        };
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "1"},
            "spec": spec,
        });
        let server = Server::new(pod);
        let node = SimulatedNode::new(Delays::default());
        let (reports, inbox) = Reports::new(environment.activity.clone());
        let agency = Agency {
            identity: Identity {
                name: "node".into(),
                host_ip: "10.0.0.1".into(),
            },
            capacity: Capacity::default(),
            directory: Directory::default(),
            volumes: None,
            faults: node.faults(),
        };
        let worker = Worker::new(
            node.runtime_in(&environment),
            agency,
            server.client(),
            environment.clone(),
            server.pod(),
            reports.clone(),
        );
        tokio::spawn(worker.run(inbox));
        let stage = Self {
            server,
            node,
            reports,
            environment,
        };
        stage.deliver();
        stage
    }

    /// The controller hands the pod over as the server has it.
    fn deliver(&self) {
        let pod = Box::new(self.server.pod());
        self.reports.send(Mail::Desired(pod, Sources::default()));
    }

    /// Until nothing is left to do; returns how long that took.
    async fn settle(&self) -> Duration {
        let begun = Instant::now();
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            match self.environment.activity.next_due() {
                Some(at) => tokio::time::sleep_until(at).await,
                None if self.environment.activity.is_idle() => return begun.elapsed(),
                None => {}
            }
        }
    }

    fn ready(&self) -> bool {
        ready(&self.server.pod())
    }
}

fn ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    conditions
        .unwrap_or_default()
        .iter()
        .any(|c| c.type_ == "Ready" && c.status == "True")
}

fn plain() -> Value {
    json!({"containers": [{"name": "main", "image": "memcached"}]})
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[tokio::test(start_paused = true)]
async fn a_pod_becomes_ready_in_its_own_time_and_then_nothing_is_written() {
    let stage = Stage::new(&plain());
    let took = stage.settle().await;
    assert!(took >= seconds(2) && took < seconds(3), "{took:?}");
    assert!(stage.ready());
    let pod = stage.server.pod();
    assert_eq!(
        pod.status.and_then(|status| status.pod_ip).as_deref(),
        Some("10.244.0.1")
    );
    let phases = ["Pending", "Running", "Running"];
    assert_eq!(
        stage.server.writes(),
        phases.map(|phase| format!("status {phase}"))
    );
    // What the server already says is not said again, nor what is older than that.
    stage.deliver();
    stage.settle().await;
    tokio::time::sleep(seconds(3600)).await;
    assert_eq!(stage.server.writes().len(), 3);
    assert!(stage.environment.activity.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_crashed_container_comes_back_later_each_time() {
    let stage = Stage::new(&plain());
    stage.settle().await;
    let mut waits = Vec::new();
    for _ in 0..4 {
        stage.node.crash("shop", "web", "main", 1).expect("it runs");
        waits.push(stage.settle().await.as_secs());
        assert!(stage.ready());
    }
    // Two seconds to start and be ready, after the back-off.
    assert_eq!(waits, [2, 12, 22, 42]);
    let status = stage.server.pod().status.expect("a status");
    let container = &status.container_statuses.expect("statuses")[0];
    assert_eq!(container.restart_count, 4);
    assert!(
        stage
            .server
            .reasons()
            .contains(&"CrashLoopBackOff".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn ten_minutes_of_running_are_forgiven() {
    let stage = Stage::new(&plain());
    for (runs_for, comes_back_after) in [(1, 2), (1, 12), (600, 2), (1, 12)] {
        stage.settle().await;
        tokio::time::sleep(seconds(runs_for)).await;
        stage.node.crash("shop", "web", "main", 1).expect("it runs");
        assert_eq!(stage.settle().await.as_secs(), comes_back_after);
    }
}

#[tokio::test(start_paused = true)]
async fn deletion_gives_time_to_end_and_then_removes_the_object() {
    for (grace, took, code) in [(30, 1, 0), (0, 0, 137)] {
        let stage = Stage::new(&plain());
        stage.settle().await;
        stage.server.mark_deleted(grace);
        stage.deliver();
        assert_eq!(stage.settle().await.as_secs(), took);
        let writes = stage.server.writes();
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let end = [
            format!("status {phase}"),
            "delete with grace 0 of u1".to_owned(),
        ];
        assert_eq!(writes[writes.len() - 2..], end);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_is_asked_again() {
    let stage = Stage::new(&plain());
    stage.server.fail_next(3);
    let took = stage.settle().await;
    assert!(stage.ready());
    assert!(took < seconds(5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_comes_back_is_found_by_the_next_try() {
    let stage = Stage::new(&plain());
    stage.node.remove_image("memcached", "no such image");
    // The worker has not run yet, so the container is refused.
    stage.settle().await;
    assert_eq!(
        stage.server.reasons().last().map(String::as_str),
        Some("ErrImagePull")
    );
    tokio::time::sleep(seconds(11)).await;
    assert_eq!(
        stage.server.reasons().last().map(String::as_str),
        Some("ImagePullBackOff")
    );
    stage.node.restore_image("memcached");
    tokio::time::sleep(seconds(20)).await;
    stage.settle().await;
    assert!(stage.ready());
}

#[tokio::test(start_paused = true)]
async fn tests_can_fail_stop_and_hold_back() {
    let stage = Stage::new(&json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "init", "image": "x"}],
        "containers": [{"name": "main", "image": "x"}, {"name": "other", "image": "x"}],
    }));
    let missing = stage
        .node
        .crash("shop", "web", "main", 1)
        .expect_err("it does not run yet");
    assert_eq!(
        missing.to_string(),
        "cannot crash container main of pod shop/web: it does not run on the simulated node"
    );
    stage.settle().await;
    stage
        .node
        .set_ready("shop", "web", "main", false)
        .expect("it runs");
    stage.settle().await;
    assert!(!stage.ready());
    stage
        .node
        .set_ready("shop", "web", "main", true)
        .expect("it runs");
    stage.settle().await;
    assert!(stage.ready());
    stage.node.stop("shop", "web").expect("it runs");
    stage.settle().await;
    let phase = |stage: &Stage| stage.server.pod().status.and_then(|status| status.phase);
    assert_eq!(phase(&stage).as_deref(), Some("Succeeded"));

    let stage = Stage::new(&plain());
    stage.settle().await;
    stage
        .node
        .fail("shop", "web", "Evicted", "no room")
        .expect("it runs");
    stage.settle().await;
    assert_eq!(phase(&stage).as_deref(), Some("Failed"));
    let status = stage.server.pod().status.expect("a status");
    assert_eq!(status.reason.as_deref(), Some("Evicted"));
}

#[tokio::test(start_paused = true)]
async fn one_seed_gives_one_history() {
    let mut histories = Vec::new();
    for _ in 0..2 {
        let stage = Stage::new(&plain());
        stage.settle().await;
        stage.node.crash("shop", "web", "main", 2).expect("it runs");
        stage.settle().await;
        histories.push(stage.server.requests());
    }
    assert_eq!(histories[0], histories[1]);
}
