//! The rules, one by one, and whatever history may bring.

mod player;

use std::time::Duration;

use k8s_openapi::api::core::v1::PodStatus;
use proptest::prelude::*;
use serde_json::json;

use self::player::{Player, at, plain, pod};
use super::*;
use crate::runtime::Adopted;

#[test]
fn a_pod_starts_and_is_ready() {
    let mut player = Player::new(plain());
    assert_eq!(player.phase(), "Pending");
    assert_eq!(player.waiting(0), "ContainerCreating");
    assert_eq!(player.run(), Plan::default());
    let status = player.status();
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert_eq!(status.pod_ip.as_deref(), Some("127.64.0.1"));
    assert_eq!(status.host_ip.as_deref(), Some("127.0.0.1"));
    for condition in status.conditions.unwrap_or_default() {
        assert_eq!(
            (condition.status.as_str(), condition.reason),
            ("True", None)
        );
    }
}

#[test]
fn a_crash_restarts_at_once_then_backs_off() {
    let mut player = Player::new(plain());
    player.run();
    player.advance(5);
    player.exit("main", 1);
    assert_eq!(player.run(), Plan::default());
    assert_eq!(player.starts.len(), 2);
    player.exit("main", 139);
    let plan = player.run();
    assert_eq!(plan.restart_at, Some(player.now + Duration::from_secs(10)));
    assert_eq!(player.waiting(0), "CrashLoopBackOff");
    assert_eq!(player.phase(), "Running");
    assert_eq!(
        player.condition("Ready"),
        ("False".into(), Some("ContainersNotReady".into()))
    );
    let status = &player.status().container_statuses.expect("statuses")[0];
    let last = status
        .last_state
        .clone()
        .and_then(|state| state.terminated)
        .expect("a last state");
    assert_eq!(
        (last.exit_code, last.reason.as_deref()),
        (139, Some("Error"))
    );
    assert_eq!(status.restart_count, 1);
    player.advance(9);
    player.run();
    assert_eq!(player.starts.len(), 2);
    player.advance(1);
    player.run();
    assert_eq!(player.starts.len(), 3);
    assert_eq!(
        player.status().container_statuses.expect("statuses")[0].restart_count,
        2
    );
}

#[test]
fn policies_decide_what_an_end_means() {
    for (policy, code, phase) in [
        ("Always", 0, "Running"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 3, "Running"),
        ("Never", 0, "Succeeded"),
        ("Never", 3, "Failed"),
    ] {
        let mut player = Player::new(pod(&json!({
            "restartPolicy": policy, "containers": [{"name": "main", "image": "x"}],
        })));
        player.run();
        player.exit("main", code);
        player.run();
        assert_eq!(player.phase(), phase, "{policy} {code}");
        assert_eq!(player.starts.len(), if phase == "Running" { 2 } else { 1 });
    }
}

#[test]
fn init_containers_run_in_order_and_only_once() {
    let mut player = Player::new(pod(&json!({
        "initContainers": [{"name": "one", "image": "x"}, {"name": "two", "image": "x"}],
        "containers": [{"name": "main", "image": "x"}],
    })));
    player.run();
    assert_eq!(player.starts, ["one"]);
    assert_eq!(player.waiting(0), "PodInitializing");
    player.exit("one", 1);
    player.run();
    assert_eq!(player.starts, ["one", "one"]);
    player.exit("one", 0);
    player.run();
    assert_eq!(player.starts, ["one", "one", "two"]);
    assert_eq!(
        player.condition("Initialized"),
        ("False".into(), Some("ContainersNotInitialized".into()))
    );
    player.exit("two", 0);
    player.run();
    assert_eq!(player.phase(), "Running");
    assert_eq!(player.condition("Initialized"), ("True".into(), None));
    player.exit("main", 0);
    player.run();
    assert_eq!(player.starts, ["one", "one", "two", "main", "main"]);
}

#[test]
fn a_failed_init_container_fails_a_pod_that_never_restarts() {
    let mut player = Player::new(pod(&json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "one", "image": "x"}],
        "containers": [{"name": "main", "image": "x"}],
    })));
    player.run();
    player.exit("one", 2);
    player.run();
    assert_eq!(
        (player.phase().as_str(), player.starts.len()),
        ("Failed", 1)
    );
}

#[test]
fn a_sidecar_runs_beside_and_ends_with_the_pod() {
    let mut player = Player::new(pod(&json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "side", "image": "x", "restartPolicy": "Always"}],
        "containers": [{"name": "main", "image": "x"}],
    })));
    player.run();
    assert_eq!(player.starts, ["side", "main"]);
    player.exit("side", 1);
    player.run();
    assert_eq!(player.starts, ["side", "main", "side"]);
    player.exit("main", 0);
    player.run();
    let State::Running(run) = &player.record.container("side").state else {
        panic!("still runs")
    };
    assert!(run.killed_at.is_some());
    player.exit("side", 143);
    player.run();
    assert_eq!(player.phase(), "Succeeded");
    assert_eq!(player.starts.len(), 3);
}

#[test]
fn deletion_stops_with_grace_and_then_removes() {
    let mut player = Player::new(plain());
    player.run();
    player.pod.metadata.deletion_timestamp = Some(status::time(player.now));
    player.pod.metadata.deletion_grace_period_seconds = Some(30);
    let first = plan(&player.pod, &player.record, player.now);
    let stop = |grace| {
        vec![Action::Stop {
            container: "main".into(),
            grace: Duration::from_secs(grace),
            cause: StopCause::PodEnds,
        }]
    };
    assert_eq!(first.actions, stop(30));
    assert_eq!(player.run(), Plan::default());
    // A second deletion that is in more of a hurry.
    player.pod.metadata.deletion_grace_period_seconds = Some(1);
    assert_eq!(
        plan(&player.pod, &player.record, player.now).actions,
        stop(1)
    );
    player.run();
    player.exit("main", 143);
    assert_eq!(player.run().actions, [Action::Delete]);
    assert_eq!(player.phase(), "Failed");
    assert_eq!(player.starts.len(), 1);
}

#[test]
fn a_pod_that_never_ran_is_removed_at_once() {
    let mut pod = plain();
    pod.metadata.deletion_timestamp = Some(status::time(at(0)));
    let record = Record::of(&pod, at(0));
    assert_eq!(plan(&pod, &record, at(0)).actions, [Action::Delete]);
}

#[test]
fn an_unhealthy_container_is_restarted() {
    let mut player = Player::new(pod(&json!({
        "containers": [{"name": "main", "image": "x", "livenessProbe": {"terminationGracePeriodSeconds": 3}}],
    })));
    player.run();
    let sick = Health {
        unhealthy: Some("Liveness probe failed: no answer".into()),
        ..Health::good()
    };
    assert!(player.record.probed("main", 0, sick.clone()));
    assert!(!player.record.probed("main", 0, sick.clone()));
    assert!(
        !player.record.probed("main", 7, Health::good()),
        "another run's probe"
    );
    let [Action::Stop { grace, cause, .. }] =
        &plan(&player.pod, &player.record, player.now).actions[..]
    else {
        panic!("not stopped")
    };
    assert_eq!(*grace, Duration::from_secs(3));
    assert_eq!(
        *cause,
        StopCause::Unhealthy("Liveness probe failed: no answer".into())
    );
    player.run();
    player.exit("main", 137);
    player.run();
    assert_eq!(player.starts.len(), 2);
}

#[test]
fn a_new_image_restarts_that_container_alone() {
    let mut player = Player::new(pod(&json!({
        "containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}],
    })));
    player.run();
    if let Some(spec) = &mut player.pod.spec {
        spec.containers[1].image = Some("y:2".into());
    }
    player.run();
    player.exit("b", 143);
    player.run();
    assert_eq!(player.starts, ["a", "b", "b"]);
    assert_eq!(player.record.container("b").restarts, 1);
}

#[test]
fn an_image_that_cannot_be_had_is_tried_again() {
    let mut player = Player::new(plain());
    player.record.starting("main", "memcached:1");
    player
        .record
        .refused("main", Refusal::Image, "no such program".into(), at(0));
    assert_eq!(player.waiting(0), "ErrImagePull");
    assert_eq!(player.phase(), "Pending");
    assert_eq!(
        plan(&player.pod, &player.record, at(9)).retry_at,
        Some(at(10))
    );
    assert_eq!(
        plan(&player.pod, &player.record, at(10)).actions,
        [Action::Start("main".into())]
    );
    player
        .record
        .refused("main", Refusal::Image, "no such program".into(), at(10));
    assert_eq!(player.waiting(0), "ImagePullBackOff");
}

#[test]
fn missing_configuration_is_reconsidered_when_woken() {
    let mut player = Player::new(plain());
    player.record.starting("main", "memcached:1");
    player.record.refused(
        "main",
        Refusal::Configuration,
        "configmap \"c\" not found".into(),
        at(0),
    );
    assert_eq!(player.waiting(0), "CreateContainerConfigError");
    assert_eq!(plan(&player.pod, &player.record, at(1)).actions, []);
    player.record.reconsider(at(1));
    assert_eq!(
        plan(&player.pod, &player.record, at(1)).actions,
        [Action::Start("main".into())]
    );
}

#[test]
fn after_a_restart_of_the_node_running_containers_count_as_lost() {
    let mut player = Player::new(plain());
    player.run();
    player.advance(100);
    let mut again = Player::new(player.pod.clone());
    again.now = player.now;
    again.run();
    let status = &again.status().container_statuses.expect("statuses")[0];
    assert_eq!(status.restart_count, 1);
    let last = status
        .last_state
        .clone()
        .and_then(|state| state.terminated)
        .expect("a last state");
    assert_eq!(
        (last.exit_code, last.reason.as_deref()),
        (137, Some("ContainerStatusUnknown"))
    );
    assert_eq!(again.status().start_time, player.status().start_time);
}

#[test]
fn what_has_ended_stays_ended() {
    let mut player = Player::new(plain());
    player.pod.status = Some(PodStatus {
        phase: Some("Failed".into()),
        ..PodStatus::default()
    });
    assert_eq!(player.run(), Plan::default());
    assert_eq!(
        (player.phase().as_str(), player.starts.len()),
        ("Failed", 0)
    );
}

#[test]
fn readiness_gates_and_foreign_conditions_are_respected() {
    let mut player = Player::new(pod(&json!({
        "readinessGates": [{"conditionType": "example.com/gate"}],
        "containers": [{"name": "main", "image": "x"}],
    })));
    player.run();
    assert_eq!(player.condition("ContainersReady").0, "True");
    assert_eq!(
        player.condition("Ready"),
        ("False".into(), Some("ReadinessGatesNotReady".into()))
    );
    let conditions = player
        .pod
        .status
        .as_mut()
        .and_then(|status| status.conditions.as_mut());
    conditions.expect("conditions").push(
        serde_json::from_value(json!({"type": "example.com/gate", "status": "True"})).expect("one"),
    );
    assert_eq!(player.condition("Ready").0, "True");
    player.report();
    let kept = player
        .pod
        .status
        .and_then(|status| status.conditions)
        .unwrap_or_default();
    assert!(
        kept.iter()
            .any(|condition| condition.type_ == "example.com/gate")
    );
}

#[test]
fn an_evicted_pod_fails_and_its_containers_are_stopped() {
    let mut player = Player::new(plain());
    player.run();
    player.record.eviction = Some(Eviction {
        reason: "Evicted".into(),
        message: "no room".into(),
    });
    player.run();
    assert_eq!(player.phase(), "Failed");
    let State::Running(run) = &player.record.container("main").state else {
        panic!("runs")
    };
    assert!(run.killed_at.is_some());
    player.exit("main", 143);
    assert_eq!(player.run(), Plan::default());
    assert_eq!(player.status().reason.as_deref(), Some("Evicted"));
    assert_eq!(player.starts.len(), 1);
}

#[test]
fn what_others_wrote_makes_no_difference() {
    let mut player = Player::new(plain());
    player.run();
    let status = player.pod.status.get_or_insert_default();
    status.qos_class = Some("BestEffort".into());
    assert!(is_reported(&player.pod, &player.status()));
    player.exit("main", 0);
    assert!(!is_reported(&player.pod, &player.status()));
}

#[test]
fn an_end_that_was_reported_before_the_node_went_away_is_not_heard_of_twice() {
    let adopted = |id: &str| Adopted {
        container: "main".into(),
        run: 0,
        id: id.into(),
        image_id: String::new(),
        at: at(0),
        ended: Some(Termination::exited(3, at(0), at(5))),
    };
    let mut waits = pod(&json!({"containers": [{"name": "main", "image": "x"}]}));
    let status = |state: serde_json::Value, last: serde_json::Value| {
        let main = json!({
            "name": "main", "image": "x", "imageID": "", "ready": false, "restartCount": 0,
            "state": state, "lastState": last,
        });
        serde_json::from_value(json!({"containerStatuses": [main]})).ok()
    };
    let ended = json!({"terminated": {"exitCode": 3, "containerID": "runtime://one"}});
    for (state, last) in [
        (ended.clone(), json!({})),
        (json!({"waiting": {"reason": "CrashLoopBackOff"}}), ended),
    ] {
        waits.status = status(state, last);
        let mut record = Record::of(&waits, at(10));
        assert!(!record.adopted(&waits, adopted("runtime://one")));
        assert!(!record.is_alive());
        assert!(record.adopted(&waits, adopted("runtime://another")));
    }
    // A run that had just begun is the one after what was reported.
    waits.status = status(
        json!({"terminated": {"exitCode": 3, "containerID": "runtime://one"}}),
        json!({}),
    );
    let mut record = Record::of(&waits, at(10));
    let next = Adopted {
        run: 1,
        ended: None,
        ..adopted("runtime://two")
    };
    assert!(record.adopted(&waits, next));
    let main = record.container("main");
    assert_eq!((main.restarts, main.is_alive()), (1, true));
    assert_eq!(main.last.as_ref().map(|last| last.exit_code), Some(3));
    // Nobody has said anything of its health, and it has no probes that will.
    let State::Running(run) = &main.state else {
        panic!("does not run")
    };
    assert_eq!(run.health, Health::good());
    // One that was said to run is news: what ended it comes next.
    waits.status = status(json!({"running": {}}), json!({}));
    let mut record = Record::of(&waits, at(10));
    assert!(record.adopted(&waits, adopted("runtime://one")));
    assert!(record.exited("main", 0, Termination::exited(3, at(0), at(5))));
    let end = record.container("main").termination().expect("an end");
    assert_eq!(
        (end.exit_code, end.id.as_deref()),
        (3, Some("runtime://one"))
    );
}

proptest! {
    /// Whatever happens, a plan comes to an end, a status computed twice is the same, and nothing is
    /// deleted while it runs.
    #[test]
    fn any_history_settles(
        policy in prop::sample::select(vec!["Always", "OnFailure", "Never"]),
        events in prop::collection::vec((0_usize..4, 0_i32..3, 0_i64..400), 0..40),
        delete_at in prop::option::of(0_usize..40),
    ) {
        let mut player = Player::new(pod(&json!({
            "restartPolicy": policy,
            "initContainers": [
                {"name": "init", "image": "x"},
                {"name": "side", "image": "x", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}],
        })));
        for (index, (container, code, seconds)) in events.into_iter().enumerate() {
            player.advance(seconds);
            if delete_at == Some(index) {
                player.pod.metadata.deletion_timestamp = Some(status::time(player.now));
                player.pod.metadata.deletion_grace_period_seconds = Some(30);
            }
            let name = ["init", "side", "a", "b"][container];
            if matches!(player.record.container(name).state, State::Running(_)) {
                player.exit(name, code);
            }
            let plan = player.run();
            prop_assert_eq!(plan.actions == [Action::Delete],
                player.pod.metadata.deletion_timestamp.is_some() && !player.record.is_alive());
            prop_assert!(is_reported(&player.pod, &player.status()));
            let ready = player.condition("Ready").0 == "True";
            prop_assert!(!ready || player.phase() == "Running");
        }
    }
}
