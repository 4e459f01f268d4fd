//! What machines, disks and networks do when nobody asks.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::json;

use super::stage::{Stage, condition, end, is_sandboxed, marked, script, status};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_container_starts_again() {
    let stage = Stage::new("kill").await;
    let spec = json!({"containers": [script("main", "exec sleep 1000"), script("other", "exec sleep 1000")]});
    stage.pod("one", spec).await;
    stage.ready("one").await;
    let faults = stage.cluster().faults();
    faults
        .kill_container("default", "one", "main")
        .await
        .expect("killed");
    let pod = stage
        .when("one", "restarted", |pod| {
            let restarted = status(pod, "main").is_some_and(|s| s.restart_count == 1);
            restarted && condition(pod, "Ready") == "True"
        })
        .await;
    assert_eq!(
        end(&pod, "main").map(|end| (end.0, end.1)),
        Some((137, "Error".into()))
    );
    assert_eq!(status(&pod, "other").map(|s| s.restart_count), Some(0));
    let nobody = faults
        .kill_container("default", "none", "main")
        .await
        .expect_err("nobody");
    assert_eq!(
        nobody.to_string(),
        "cannot kill a container of pod default/none: it does not run on the node"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_without_a_network_is_not_ready() {
    let stage = Stage::new("cut").await;
    let server = "exec python3 -m http.server 8080 --bind $${POD_IP:-0.0.0.0}";
    let mut main = script("main", server);
    main["readinessProbe"] =
        json!({"tcpSocket": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 1});
    stage.pod("one", json!({"containers": [main]})).await;
    stage.ready("one").await;
    let faults = stage.cluster().faults();
    let cut = faults.cut_network("default", "one").await;
    if !is_sandboxed() {
        let refused = cut.expect_err("no network of its own").to_string();
        assert!(refused.contains("machine's own network"), "{refused}");
        return stage.stop().await;
    }
    cut.expect("cut");
    let is = |wanted: &'static str| move |pod: &Pod| condition(pod, "Ready") == wanted;
    stage.when("one", "unready", is("False")).await;
    faults
        .restore_network("default", "one")
        .await
        .expect("restored");
    let pod = stage.when("one", "ready again", is("True")).await;
    assert_eq!(status(&pod, "main").map(|s| s.restart_count), Some(0));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_disk_is_empty_when_the_pod_is_back() {
    let stage = Stage::new("disk").await;
    let mut main = script(
        "main",
        "ls $WINDLASS_VOLUME_DATA; echo x > $WINDLASS_VOLUME_DATA/file; echo up; exec sleep 1000",
    );
    main["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    let spec = json!({"containers": [main], "volumes": [{"name": "data", "emptyDir": {}}]});
    stage.pod("one", spec).await;
    stage.line("one", "main", "up").await;
    let faults = stage.cluster().faults();
    // A mere restart keeps what was written.
    faults
        .kill_container("default", "one", "main")
        .await
        .expect("killed");
    stage.line("one", "main", "file").await;
    stage.line("one", "main", "up").await;
    stage
        .when("one", "running", |pod| {
            status(pod, "main").is_some_and(|s| s.restart_count == 1 && s.ready)
        })
        .await;
    faults.lose_disk("default", "one").await.expect("lost");
    stage
        .when("one", "restarted", |pod| {
            status(pod, "main").is_some_and(|s| s.restart_count == 2 && s.ready)
        })
        .await;
    stage.line("one", "main", "up").await;
    assert_eq!(stage.log("one", "main").await, "up\n");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_does_not_answer_keeps_its_pods_running() {
    let stage = Stage::new("silent").await;
    let spec = json!({"containers": [script("main", "exec sleep 1000")]});
    stage.pod("one", spec.clone()).await;
    stage.ready("one").await;
    let leases: Api<Lease> = Api::namespaced(stage.client.clone(), "kube-node-lease");
    let renewed = || async {
        let lease = leases.get("here").await.expect("a lease");
        lease
            .spec
            .and_then(|spec| spec.renew_time)
            .map(|time| time.0)
    };
    let faults = stage.cluster().faults().clone();
    faults.stop_answering();
    let before = renewed().await;
    stage.pod("two", spec).await;
    let (pods, params) = (stage.pods(), kube::api::LogParams::default());
    let log = tokio::time::timeout(Duration::from_secs(1), pods.logs("one", &params));
    assert!(log.await.is_err(), "the node answered");
    let folder = stage.folder.to_string_lossy().into_owned();
    assert_eq!(
        marked(&folder).len(),
        1,
        "the first pod runs, the second was not started"
    );
    let pod = stage.pods().get("two").await.expect("a pod");
    assert_eq!(condition(&pod, "Ready"), "");
    assert_eq!(renewed().await, before);
    faults.answer();
    stage.ready("two").await;
    stage
        .until("a renewed lease", || async {
            (renewed().await != before).then_some(())
        })
        .await;
    stage.stop().await;
}
