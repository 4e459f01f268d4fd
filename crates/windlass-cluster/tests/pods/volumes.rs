//! Volumes of real pods. Without a mount namespace a container finds them by variables, and an
//! event says so.

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::stage::{Stage, condition, is_sandboxed, phase, script, uid, waits};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_share_a_folder_and_people_are_told_where_it_is() {
    let stage = Stage::new("empty-dir").await;
    let mount = json!([{"name": "my-data", "mountPath": "/data"}]);
    let mut first = script("first", "echo hello > $WINDLASS_VOLUME_MY_DATA/file");
    first["volumeMounts"] = mount.clone();
    let mut main = script("main", "cat $WINDLASS_VOLUME_MY_DATA/file");
    main["volumeMounts"] = mount;
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [first], "containers": [main],
        "volumes": [{"name": "my-data", "emptyDir": {}}],
    });
    let pod = stage.pod("one", spec).await;
    stage.ended("one", "Succeeded").await;
    assert_eq!(stage.log("one", "main").await, "hello\n");
    if is_sandboxed() {
        assert!(!stage.events("one").await.contains_key("VolumesNotMounted"));
        return stage.stop().await;
    }
    let told = stage.told("one", "VolumesNotMounted").await;
    let place = stage
        .folder
        .join("node/volumes")
        .join(uid(&pod))
        .join("my-data");
    assert!(told.contains("my-data at /data"), "{told}");
    assert!(told.contains(&*place.to_string_lossy()), "{told}");
    assert!(told.contains("$WINDLASS_VOLUME_MY_DATA"), "{told}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_follow_their_config_map_and_secret() {
    let stage = Stage::new("config-map").await;
    let mut main = script(
        "main",
        "last=; while :; do now=$(cat $WINDLASS_VOLUME_CONFIG/word $WINDLASS_VOLUME_KEYS/word | tr '\\n' ' '); \
         test \"$now\" = \"$last\" || echo \"$now\"; last=$now; sleep 0.05; done",
    );
    main["command"][2] = json!(
        main["command"][2]
            .as_str()
            .unwrap_or("")
            .replace("$(", "$$(")
    );
    main["volumeMounts"] = json!([
        {"name": "config", "mountPath": "/config"}, {"name": "keys", "mountPath": "/keys"},
    ]);
    let spec = json!({"containers": [main], "volumes": [
        {"name": "config", "configMap": {"name": "settings"}},
        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o400}},
    ]});
    let pod = stage.pod("one", spec).await;
    let told = stage.told("one", "FailedMount").await;
    assert_eq!(
        told,
        "MountVolume.SetUp failed for volume \"config\" : configmap \"settings\" not found"
    );
    let waiting = stage
        .when("one", "waiting", |pod| {
            waits(pod, "main") == "ContainerCreating"
        })
        .await;
    assert_eq!(phase(&waiting), "Pending");
    assert_eq!(condition(&waiting, "PodReadyToStartContainers"), "False");
    stage
        .create::<ConfigMap>(json!({"metadata": {"name": "settings"}, "data": {"word": "one\n"}}))
        .await;
    stage
        .create::<Secret>(json!({"metadata": {"name": "keys"}, "stringData": {"word": "two\n"}}))
        .await;
    stage.line("one", "main", "one two ").await;
    stage
        .patch::<ConfigMap>(
            "settings",
            json!({"data": {"word": "three\n", "more": "x"}}),
        )
        .await;
    stage.line("one", "main", "three two ").await;
    stage
        .patch::<Secret>("keys", json!({"stringData": {"word": "four\n"}}))
        .await;
    stage.line("one", "main", "three four ").await;
    let folder = stage.folder.join("node/volumes").join(uid(&pod));
    assert_eq!(
        std::fs::read_to_string(folder.join("config/more")).expect("a file"),
        "x"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_in_a_file_follow_the_pod() {
    let stage = Stage::new("downward").await;
    let mut main = script("main", "exec sleep 1000");
    main["volumeMounts"] = json!([{"name": "pod", "mountPath": "/pod"}]);
    let spec = json!({"containers": [main], "volumes": [{"name": "pod", "downwardAPI": {"items": [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
    ]}}]});
    let pod = stage.labelled("one", json!({"app": "shop"}), spec).await;
    stage.ready("one").await;
    let folder = stage
        .folder
        .join("node/volumes")
        .join(uid(&pod))
        .join("pod");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    assert_eq!(
        (read("labels").as_str(), read("name").as_str()),
        ("app=\"shop\"", "one")
    );
    stage
        .patch::<Pod>("one", json!({"metadata": {"labels": {"tier": "front"}}}))
        .await;
    stage
        .until("the new label", || async {
            (read("labels") == "app=\"shop\"\ntier=\"front\"").then_some(())
        })
        .await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pod_has_a_token_the_authority_and_its_namespace() {
    let stage = Stage::new("token").await;
    let spec = json!({"restartPolicy": "Never", "containers": [script(
        "main",
        "cd $WINDLASS_SERVICE_ACCOUNT && ls && cat namespace && echo && cat token",
    )]});
    stage.pod("one", spec).await;
    stage.ended("one", "Succeeded").await;
    let log = stage.log("one", "main").await;
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(
        lines[..4],
        ["ca.crt", "namespace", "token", "default"],
        "{log}"
    );
    // The token is good, is the pod's account's, and is bound to the pod.
    let review: k8s_openapi::api::authentication::v1::TokenReview =
        serde_json::from_value(json!({"spec": {"token": lines[4]}})).expect("a review");
    let reviews: Api<k8s_openapi::api::authentication::v1::TokenReview> =
        Api::all(stage.client.clone());
    let review = reviews
        .create(&PostParams::default(), &review)
        .await
        .expect("a review");
    let status = review.status.expect("a status");
    assert_eq!(status.authenticated, Some(true), "{status:?}");
    let user = status.user.expect("a user");
    assert_eq!(
        user.username.as_deref(),
        Some("system:serviceaccount:default:default")
    );
    let extra = user.extra.unwrap_or_default();
    let bound = extra.get("authentication.kubernetes.io/pod-name");
    assert_eq!(bound, Some(&vec!["one".to_owned()]), "{extra:?}");
    assert!(!stage.events("one").await.contains_key("VolumesNotMounted"));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_outlives_the_pods_that_use_it() {
    let stage = Stage::new("claim").await;
    let disk = stage.folder.join("disk");
    let volumes: Api<PersistentVolume> = Api::all(stage.client.clone());
    let volume = json!({
        "metadata": {"name": "disk"},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": disk}, "storageClassName": "by-hand",
            "claimRef": {"name": "data", "namespace": "default"},
        },
    });
    let volume = serde_json::from_value(volume).expect("a volume");
    volumes
        .create(&PostParams::default(), &volume)
        .await
        .expect("created");
    let mut main = script(
        "main",
        "date +%s%N >> $WINDLASS_VOLUME_DATA/log; wc -l < $WINDLASS_VOLUME_DATA/log; pwd",
    );
    main["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/data", "subPathExpr": "of/$(HOSTNAME)"}]);
    let spec = json!({
        "restartPolicy": "Never", "hostname": "box", "nodeName": "here", "containers": [main],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    });
    stage.pod("first", spec.clone()).await;
    let told = stage.told("first", "FailedMount").await;
    assert!(
        told.contains("persistentvolumeclaim \"data\" not found"),
        "{told}"
    );
    stage
        .create::<PersistentVolumeClaim>(json!({
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "by-hand", "volumeName": "disk",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }))
        .await;
    // What a binder does.
    let claims: Api<PersistentVolumeClaim> = stage.api();
    let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}});
    let merge = kube::api::Patch::Merge(&bound);
    claims
        .patch_status("data", &kube::api::PatchParams::default(), &merge)
        .await
        .expect("bound");
    stage.ended("first", "Succeeded").await;
    stage.pod("second", spec).await;
    stage.ended("second", "Succeeded").await;
    let counts: Vec<String> = [
        stage.log("first", "main").await,
        stage.log("second", "main").await,
    ]
    .iter()
    .filter_map(|log| log.lines().next().map(|line| line.trim().to_owned()))
    .collect();
    assert_eq!(counts, ["1", "2"]);
    assert!(disk.join("of/box/log").is_file());
    stage.stop().await;
}
