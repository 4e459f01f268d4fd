//! What a container finds in its environment.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use serde_json::json;

use super::stage::{Stage, is_sandboxed, script, waits};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn variables_from_everywhere() {
    let stage = Stage::new("variables").await;
    stage
        .create::<ConfigMap>(
            json!({"metadata": {"name": "settings"}, "data": {"COLOUR": "red", "SIZE": "9"}}),
        )
        .await;
    stage
        .create::<Secret>(json!({"metadata": {"name": "keys"}, "stringData": {"word": "sesame"}}))
        .await;
    stage
        .create::<Service>(json!({
            "metadata": {"name": "my-db"},
            "spec": {"ports": [{"name": "sql", "port": 5432}]},
        }))
        .await;
    let mut main = script("main", "env; echo \"$0|$1\"; pwd");
    main["args"] = json!(["$(WORD)-$(NOWHERE)", "$$(WORD)"]);
    main["workingDir"] = json!("/usr");
    main["envFrom"] = json!([
        {"prefix": "P_", "configMapRef": {"name": "settings"}},
        {"configMapRef": {"name": "absent", "optional": true}},
    ]);
    main["env"] = json!([
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "word"}}},
        {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "none", "optional": true}}},
        {"name": "ONE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "SIZE"}}},
        {"name": "BOTH", "value": "$(WORD) and $(P_COLOUR)"},
        {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}},
        {"name": "URL", "value": "$(MY_DB_PORT)"},
    ]);
    main["resources"] = json!({"limits": {"cpu": "500m"}, "requests": {"memory": "64Mi"}});
    let spec = json!({"restartPolicy": "Never", "containers": [main]});
    stage.labelled("one", json!({"app": "shop"}), spec).await;
    let pod = stage.ended("one", "Succeeded").await;
    let log = stage.log("one", "main").await;
    let address = pod
        .status
        .and_then(|status| status.pod_ip)
        .expect("an address");
    let services = stage.api::<Service>();
    let db = services.get("my-db").await.expect("a service");
    let db = db
        .spec
        .and_then(|spec| spec.cluster_ip)
        .expect("an address");
    for expected in [
        "P_COLOUR=red".to_owned(),
        "P_SIZE=9".to_owned(),
        "WORD=sesame".to_owned(),
        "ONE=9".to_owned(),
        "BOTH=sesame and red".to_owned(),
        format!("ADDRESS={address}"),
        "NODE=here".to_owned(),
        "LABEL=shop".to_owned(),
        "CPU=500".to_owned(),
        "MEMORY=64".to_owned(),
        format!("MY_DB_SERVICE_HOST={db}"),
        "MY_DB_SERVICE_PORT_SQL=5432".to_owned(),
        format!("URL=tcp://{db}:5432"),
        "HOSTNAME=one".to_owned(),
        "sesame-$(NOWHERE)|$(WORD)".to_owned(),
        "/usr".to_owned(),
    ] {
        assert!(
            log.lines().any(|line| line == expected),
            "no {expected} in {log}"
        );
    }
    assert!(!log.contains("NONE="), "{log}");
    let host = if is_sandboxed() {
        "10.96.0.1"
    } else {
        "127.0.0.1"
    };
    let host = format!("KUBERNETES_SERVICE_HOST={host}\n");
    assert!(log.contains(&host), "{log}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_waited_for() {
    let stage = Stage::new("missing").await;
    let mut main = script("main", "echo $WORD; exec sleep 1000");
    main["env"] = json!([{"name": "WORD", "valueFrom": {"configMapKeyRef": {"name": "later", "key": "word"}}}]);
    stage.pod("one", json!({"containers": [main]})).await;
    stage
        .when("one", "refused", |pod| {
            waits(pod, "main") == "CreateContainerConfigError"
        })
        .await;
    let told = stage.told("one", "Failed").await;
    assert_eq!(told, "Error: configmap \"later\" not found");
    stage
        .create::<ConfigMap>(json!({"metadata": {"name": "later"}, "data": {"word": "hello"}}))
        .await;
    stage.running("one").await;
    stage.line("one", "main", "hello").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_runs_as_the_user_it_names() {
    let stage = Stage::new("user").await;
    let mut root = script("main", "id -u");
    root["securityContext"] = json!({"runAsNonRoot": true, "runAsUser": 0});
    stage.pod("root", json!({"containers": [root]})).await;
    stage
        .when("root", "refused", |pod| {
            waits(pod, "main") == "CreateContainerConfigError"
        })
        .await;
    let am_root = std::fs::metadata("/proc/self").is_ok_and(|me| {
        use std::os::unix::fs::MetadataExt;
        me.uid() == 0
    });
    if am_root {
        let mut nobody = script(
            "main",
            "id -u; id -g; touch here 2>/dev/null && echo can write here; \
             touch $WINDLASS_VOLUME_DATA/there && echo can write there",
        );
        nobody["securityContext"] = json!({"runAsUser": 65534});
        nobody["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
        let spec = json!({
            "restartPolicy": "Never",
            "securityContext": {"runAsGroup": 1234, "runAsUser": 5},
            "containers": [nobody],
            "volumes": [{"name": "data", "emptyDir": {}}],
        });
        stage.pod("nobody", spec).await;
        stage.ended("nobody", "Succeeded").await;
        let log = stage.log("nobody", "main").await;
        // A sandbox begins in its root, which is root's; a plain process in a folder of its own.
        let here = if is_sandboxed() {
            ""
        } else {
            "can write here\n"
        };
        assert_eq!(log, format!("65534\n1234\n{here}can write there\n"));
    } else {
        windlass_skip::skip("only root can run processes as another user");
    }
    stage.stop().await;
}
