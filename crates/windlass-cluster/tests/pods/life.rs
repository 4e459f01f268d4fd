//! Starting in order, ending, and starting again.

use kube::api::DeleteParams;
use serde_json::json;

use super::stage::{Stage, condition, end, is_sandboxed, phase, script, status, waits};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn init_containers_run_in_order_and_a_sidecar_stays() {
    let stage = Stage::new("init").await;
    let file = stage.shared.join("order");
    let note = |word: &str| format!("echo {word} >> {}", file.display());
    let mut sidecar = script("sidecar", &format!("{}; exec sleep 1000", note("sidecar")));
    sidecar["restartPolicy"] = json!("Always");
    let second = format!("sleep 0.2; {}", note("second"));
    let spec = json!({
        "initContainers": [script("first", &note("first")), sidecar, script("second", &second)],
        "containers": [script("main", &format!("{}; exec sleep 1000", note("main")))],
    });
    stage.pod("one", stage.sharing(spec)).await;
    let pod = stage.ready("one").await;
    let order = std::fs::read_to_string(&file).expect("a file");
    assert_eq!(order, "first\nsidecar\nsecond\nmain\n");
    assert_eq!(condition(&pod, "Initialized"), "True");
    assert_eq!(end(&pod, "first").map(|end| end.0), Some(0));
    assert_eq!(end(&pod, "second").map(|end| end.0), Some(0));
    let sidecar = status(&pod, "sidecar").expect("a status");
    assert!(sidecar.ready && sidecar.started == Some(true));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_init_container_keeps_the_others_waiting() {
    let stage = Stage::new("init-fails").await;
    stage
        .pod(
            "again",
            json!({
                "initContainers": [script("first", "exit 4")],
                "containers": [script("main", "exec sleep 1000")],
            }),
        )
        .await;
    let pod = stage
        .when("again", "backing off", |pod| {
            waits(pod, "first") == "CrashLoopBackOff"
        })
        .await;
    assert_eq!(phase(&pod), "Pending");
    assert_eq!(waits(&pod, "main"), "PodInitializing");
    assert_eq!(end(&pod, "first").map(|end| end.0), Some(4));
    assert_eq!(condition(&pod, "Initialized"), "False");
    stage
        .pod(
            "never",
            json!({
                "restartPolicy": "Never",
                "initContainers": [script("first", "exit 4")],
                "containers": [script("main", "exec sleep 1000")],
            }),
        )
        .await;
    let pod = stage.ended("never", "Failed").await;
    assert_eq!(status(&pod, "first").map(|s| s.restart_count), Some(0));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crashing_container_backs_off() {
    let stage = Stage::new("crash").await;
    stage
        .pod(
            "one",
            json!({"containers": [script("main", "echo up; exit 7")]}),
        )
        .await;
    // The first restart is immediate, the next waits.
    let pod = stage
        .when("one", "backing off", |pod| {
            waits(pod, "main") == "CrashLoopBackOff"
                && status(pod, "main").is_some_and(|status| status.restart_count == 1)
        })
        .await;
    let waiting = status(&pod, "main").and_then(|s| s.state.clone()?.waiting);
    let message = waiting
        .and_then(|waiting| waiting.message)
        .unwrap_or_default();
    assert!(
        message.starts_with("back-off 10s restarting failed container=main pod=one_default("),
        "{message}"
    );
    assert_eq!(phase(&pod), "Running");
    assert_eq!(condition(&pod, "Ready"), "False");
    assert_eq!(
        end(&pod, "main").map(|end| (end.0, end.1)),
        Some((7, "Error".into()))
    );
    let told = stage.told("one", "BackOff").await;
    assert!(
        told.starts_with("Back-off restarting failed container main"),
        "{told}"
    );
    let previous = kube::api::LogParams {
        previous: true,
        ..kube::api::LogParams::default()
    };
    let log = stage.pods().logs("one", &previous).await.expect("a log");
    assert_eq!(log, "up\n");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_decide_whether_an_end_is_final() {
    let stage = Stage::new("policy").await;
    let cases = [
        ("never-well", "Never", "exit 0", "Succeeded"),
        ("never-badly", "Never", "exit 3", "Failed"),
        ("on-failure", "OnFailure", "exit 0", "Succeeded"),
    ];
    for (name, policy, command, _) in cases {
        stage
            .pod(
                name,
                json!({"restartPolicy": policy, "containers": [script("main", command)]}),
            )
            .await;
    }
    for (name, _, _, phase) in cases {
        let pod = stage.ended(name, phase).await;
        assert_eq!(status(&pod, "main").map(|s| s.restart_count), Some(0));
        assert_eq!(condition(&pod, "Ready"), "False");
    }
    // A container may say for itself which ends are none.
    let mut ruled = script(
        "main",
        "test -e $WINDLASS_VOLUME_DATA/second && exit 0; touch $WINDLASS_VOLUME_DATA/second; exit 42",
    );
    ruled["restartPolicy"] = json!("Never");
    ruled["restartPolicyRules"] =
        json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
    ruled["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    stage
        .pod(
            "ruled",
            json!({
                "restartPolicy": "Never",
                "containers": [ruled],
                "volumes": [{"name": "data", "emptyDir": {}}],
            }),
        )
        .await;
    let pod = stage.ended("ruled", "Succeeded").await;
    assert_eq!(status(&pod, "main").map(|s| s.restart_count), Some(1));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_image_restarts_that_container_alone() {
    let stage = Stage::new("image").await;
    stage
        .pod(
            "one",
            json!({"containers": [
                {
                    "name": "a", "image": "memcached:1.6",
                    "command": ["memcached", "-u", "nobody", "-l", "$(POD_IP)"],
                    "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                },
                script("b", "exec sleep 1000"),
            ]}),
        )
        .await;
    let before = stage.ready("one").await;
    let id = |pod: &k8s_openapi::api::core::v1::Pod, name: &str| {
        status(pod, name).map(|s| (s.container_id.clone(), s.image_id.clone()))
    };
    stage
        .patch::<k8s_openapi::api::core::v1::Pod>(
            "one",
            json!({"spec": {"containers": [{"name": "a", "image": "other:2"}]}}),
        )
        .await;
    let after = stage
        .when("one", "restarted", |pod| {
            let restarted = status(pod, "a").is_some_and(|s| s.restart_count == 1);
            restarted && condition(pod, "Ready") == "True"
        })
        .await;
    assert_eq!(id(&before, "b"), id(&after, "b"));
    assert_ne!(id(&before, "a"), id(&after, "a"));
    let image = |pod, name| {
        status(pod, name)
            .map(|s| s.image_id.clone())
            .unwrap_or_default()
    };
    assert!(
        image(&before, "a").contains("memcached@1."),
        "{}",
        image(&before, "a")
    );
    assert_ne!(image(&before, "a"), image(&after, "a"));
    let told = stage.told("one", "Killing").await;
    assert!(told.contains("another image"), "{told}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_nobody_knows_is_an_error_that_says_what_to_do() {
    let stage = Stage::new("pull").await;
    stage
        .pod(
            "one",
            json!({"containers": [{"name": "main", "image": "example.com/none:1"}]}),
        )
        .await;
    let pod = stage
        .when("one", "refused", |pod| waits(pod, "main") == "ErrImagePull")
        .await;
    assert_eq!(phase(&pod), "Pending");
    let told = stage.told("one", "Failed").await;
    assert!(told.contains("add the image to images.yaml"), "{told}");
    stage
        .when("one", "backing off", |pod| {
            waits(pod, "main") == "ImagePullBackOff"
        })
        .await;
    stage.delete("one", &DeleteParams::default()).await;
    stage.gone("one").await;
    // A program that is not there is another error: the container was tried.
    stage
        .pod(
            "two",
            json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "x", "command": ["no-such-program"]}]}),
        )
        .await;
    let pod = stage.ended("two", "Failed").await;
    let (code, reason, message) = end(&pod, "main").expect("an end");
    assert_eq!((code, reason.as_str()), (128, "StartError"));
    assert!(message.contains("executable file not found"), "{message}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_says_where_and_as_what_it_is() {
    let stage = Stage::new("status").await;
    let created = stage
        .pod(
            "one",
            json!({
                "hostname": "box", "subdomain": "shelf",
                "containers": [script("main", "echo $HOSTNAME; exec sleep 1000")],
            }),
        )
        .await;
    let pod = stage.ready("one").await;
    stage.line("one", "main", "box").await;
    let status = pod.status.as_ref().expect("a status");
    let address = status.pod_ip.clone().expect("an address");
    let number: std::net::Ipv4Addr = address.parse().expect("an address");
    if is_sandboxed() {
        assert_eq!(number.octets()[..2], [10, 244], "{address}");
    } else {
        assert!(
            number.octets()[0] == 127 && number.octets()[1] & 0xC0 == 64,
            "{address}"
        );
        assert_eq!(status.host_ip.as_deref(), Some("127.0.0.1"));
    }
    let conditions: Vec<&str> = [
        "PodReadyToStartContainers",
        "Initialized",
        "ContainersReady",
        "Ready",
        "PodScheduled",
    ]
    .into_iter()
    .filter(|type_| condition(&pod, type_) == "True")
    .collect();
    assert_eq!(conditions.len(), 5, "{:#?}", status.conditions);
    let generation = created.metadata.generation;
    assert_eq!(status.observed_generation, generation);
    let ready = status
        .conditions
        .iter()
        .flatten()
        .find(|c| c.type_ == "Ready");
    assert_eq!(ready.and_then(|c| c.observed_generation), generation);
    stage.stop().await;
}
