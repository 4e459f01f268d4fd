//! What the operator promises, one scenario each: played in process, disturbed in every way there
//! is, and, where it needs no running pod, on a real control plane.
//!
//! Sets are cluster-scoped, so each has the name of its scenario's namespace in its own.

mod audience;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sidecarset_operator::{ANNOTATION, SidecarSet, SidecarSetStatus, operator, records_of};
use windlass_cluster::{Stage, answered};

windlass_cluster::scenarios! {
    super::operator,
    anywhere: [
        a_pod_that_does_not_match_is_untouched,
        a_pod_that_matches_gets_the_containers_in_order,
        volumes_and_variables_are_shared_as_asked_for,
        two_sets_put_their_containers_into_one_pod,
        pods_of_ignored_namespaces_are_untouched,
        a_label_changed_in_and_out_of_the_selector_is_counted,
        more_than_the_image_changed_updates_none_and_says_so,
        a_set_that_is_deleted_leaves_its_pods_alone,
        injection_that_is_paused_leaves_new_pods_alone,
        what_the_documentation_of_openkruise_shows_applies_as_it_is,
        missing_fields_get_their_defaults,
        overlapping_sets_may_not_add_the_same_container,
    ],
    with_pods: [
        the_status_counts_pods,
        an_image_is_rolled_out_in_place_one_pod_at_a_time,
        max_unavailable_lets_more_go_at_once,
        a_partition_keeps_pods_as_they_are,
        paused_nothing_is_rolled_out,
        only_selected_pods_are_upgraded,
        a_bad_image_stops_after_one_pod_and_a_good_one_heals_it,
    ],
}

/// The name of a set of this scenario.
fn name(stage: &Stage, what: &str) -> String {
    format!("{what}-{}", stage.namespace())
}

fn sets(stage: &Stage) -> Api<SidecarSet> {
    Api::all(stage.client())
}

/// A set about the pods of this scenario with the label `app: web`.
fn set(stage: &Stage, what: &str, mut spec: Value) -> Value {
    spec["namespace"] = json!(stage.namespace());
    if spec["selector"].is_null() {
        spec["selector"] = json!({ "matchLabels": { "app": "web" } });
    }
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet",
        "metadata": { "name": name(stage, what) }, "spec": spec,
    })
}

async fn apply(stage: &Stage, set: &Value) -> SidecarSet {
    let name = set["metadata"]["name"].as_str().unwrap();
    let mut params = PatchParams::apply("scenario").force();
    params.field_validation = Some(kube::api::ValidationDirective::Strict);
    let (api, patch) = (sets(stage), Patch::Apply(set));
    let made = answered(async || api.patch(name, &params, &patch).await).await;
    made.unwrap_or_else(|error| panic!("cannot apply {name}: {error}"))
}

/// Makes a set, and waits until the operator knows it.
async fn make(stage: &Stage, what: &str, spec: Value) -> String {
    let made = apply(stage, &set(stage, what, spec)).await;
    let name = made.name_any();
    until(stage, &name, "known", |_| true).await;
    stage.rest().await;
    name
}

/// Waits until a set's status tells of what it asks for now, and is as expected.
async fn until(
    stage: &Stage,
    name: &str,
    what: &str,
    is: impl Fn(&SidecarSetStatus) -> bool,
) -> SidecarSet {
    let current = |set: Option<&SidecarSet>| {
        set.is_some_and(|set| {
            let status = set.status.clone().unwrap_or_default();
            status.observed_generation == set.metadata.generation && is(&status)
        })
    };
    let found = stage.until_in(&sets(stage), name, what, current).await;
    found.expect("a set that is there")
}

async fn counted(stage: &Stage, name: &str, matched: i32, updated: i32) -> SidecarSet {
    until(stage, name, "counted", |status| {
        status.matched_pods == matched && status.updated_pods == updated
    })
    .await
}

fn pod(name: &str, app: &str) -> Pod {
    let pod = json!({
        "metadata": { "name": name, "labels": { "app": app, "name": name } },
        "spec": { "containers": [{
            "name": "main", "image": "main:1",
            "env": [{ "name": "PROXY_IP", "value": "1.2.3.4" }],
            "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
        }], "volumes": [{ "name": "data", "emptyDir": {} }] },
    });
    serde_json::from_value(pod).unwrap()
}

fn containers(pod: &Pod) -> Vec<&str> {
    let containers = &pod.spec.as_ref().unwrap().containers;
    containers
        .iter()
        .map(|container| container.name.as_str())
        .collect()
}

fn sidecar(image: &str) -> Value {
    json!({ "containers": [{ "name": "log", "image": image }] })
}

async fn a_pod_that_does_not_match_is_untouched(stage: Stage) {
    let name = make(&stage, "set", sidecar("log:1")).await;
    let made = stage.create(&pod("other", "db")).await;
    assert_eq!(containers(&made), ["main"]);
    assert!(!made.annotations().contains_key(ANNOTATION));
    stage.rest().await;
    counted(&stage, &name, 0, 0).await;
}

async fn a_pod_that_matches_gets_the_containers_in_order(stage: Stage) {
    let spec = json!({
        "containers": [
            { "name": "first", "image": "a:1" },
            { "name": "last", "image": "b:1", "podInjectPolicy": "AfterAppContainer" },
            { "name": "second", "image": "c:1" },
        ],
        "initContainers": [{ "name": "before", "image": "i:1" }],
    });
    let name = make(&stage, "set", spec).await;
    let made = stage.create(&pod("web", "web")).await;
    assert_eq!(containers(&made), ["first", "second", "main", "last"]);
    let spec = made.spec.as_ref().unwrap();
    assert_eq!(spec.init_containers.as_ref().unwrap()[0].name, "before");
    let env = spec.containers[0].env.as_ref().unwrap();
    assert!(
        env.iter()
            .any(|one| one.name == "IS_INJECTED" && one.value.as_deref() == Some("true"))
    );
    let record = &records_of(&made)[&name];
    assert_eq!(record.sidecar_list, ["first", "last", "second"]);
    assert_eq!(record.generation, 1);
    assert!(!record.hash.is_empty());
    counted(&stage, &name, 1, 1).await;
    stage.rest().await;
}

async fn volumes_and_variables_are_shared_as_asked_for(stage: Stage) {
    let spec = json!({
        "containers": [{
            "name": "log", "image": "log:1",
            "shareVolumePolicy": { "type": "enabled" },
            "transferEnv": [{ "sourceContainerName": "main", "envName": "PROXY_IP" }],
            "volumeMounts": [{ "name": "logs", "mountPath": "/var/log" }],
        }],
        "volumes": [{ "name": "logs", "emptyDir": {} }],
    });
    make(&stage, "set", spec).await;
    let made = stage.create(&pod("web", "web")).await;
    let spec = serde_json::to_value(made.spec.unwrap()).unwrap();
    let sidecar = &spec["containers"][0];
    let has = |list: &Value, field: &str, value: &str| {
        list.as_array()
            .unwrap()
            .iter()
            .any(|one| one[field] == value)
    };
    assert!(has(&sidecar["volumeMounts"], "mountPath", "/var/log"));
    assert!(has(&sidecar["volumeMounts"], "mountPath", "/data"));
    assert!(has(&sidecar["env"], "value", "1.2.3.4"));
    assert!(has(&spec["volumes"], "name", "logs") && has(&spec["volumes"], "name", "data"));
    stage.rest().await;
}

async fn two_sets_put_their_containers_into_one_pod(stage: Stage) {
    let one = make(
        &stage,
        "one",
        json!({ "containers": [{ "name": "a", "image": "a:1" }] }),
    )
    .await;
    let two = make(
        &stage,
        "two",
        json!({ "containers": [{ "name": "b", "image": "b:1" }] }),
    )
    .await;
    let made = stage.create(&pod("web", "web")).await;
    assert_eq!(containers(&made), ["a", "b", "main"]);
    for name in [one, two] {
        counted(&stage, &name, 1, 1).await;
    }
    stage.rest().await;
}

async fn pods_of_ignored_namespaces_are_untouched(stage: Stage) {
    let mut everywhere = set(&stage, "set", sidecar("log:1"));
    let label = name(&stage, "app");
    let spec = everywhere["spec"].as_object_mut().unwrap();
    spec.remove("namespace");
    spec["selector"] = json!({ "matchLabels": { "app": label } });
    let name = apply(&stage, &everywhere).await.name_any();
    until(&stage, &name, "known", |_| true).await;
    stage.rest().await;
    let system: Api<Pod> = Api::namespaced(stage.client(), "kube-public");
    let mut outside = pod(&label, &label);
    outside
        .spec
        .as_mut()
        .unwrap()
        .automount_service_account_token = Some(false);
    let made = system.create(&PostParams::default(), &outside).await;
    if stage.cluster().is_some() {
        assert_eq!(containers(&made.unwrap()), ["main"]);
    }
    let made = stage.create(&pod("web", &label)).await;
    assert_eq!(containers(&made), ["log", "main"]);
    counted(&stage, &name, 1, 1).await;
    stage.rest().await;
}

async fn a_label_changed_in_and_out_of_the_selector_is_counted(stage: Stage) {
    let name = make(&stage, "set", sidecar("log:1")).await;
    stage.create(&pod("in", "web")).await;
    stage.create(&pod("out", "db")).await;
    counted(&stage, &name, 1, 1).await;
    stage.rest().await;
    let labelled = |app: &str| json!({ "metadata": { "labels": { "app": app } } });
    stage.patch::<Pod>("out", labelled("web")).await;
    let set = counted(&stage, &name, 2, 1).await;
    let conditions = set.status.unwrap().conditions;
    assert!(
        conditions
            .iter()
            .any(|one| one.type_ == "Upgradable" && one.status == "False"),
        "it has no sidecars"
    );
    stage.rest().await;
    stage.patch::<Pod>("in", labelled("db")).await;
    stage.patch::<Pod>("out", labelled("db")).await;
    counted(&stage, &name, 0, 0).await;
    stage.rest().await;
}

async fn more_than_the_image_changed_updates_none_and_says_so(stage: Stage) {
    let name = make(&stage, "set", sidecar("log:1")).await;
    stage.create(&pod("web", "web")).await;
    counted(&stage, &name, 1, 1).await;
    stage.rest().await;
    let more = json!({ "containers": [{ "name": "log", "image": "log:2", "args": ["-v"] }] });
    apply(&stage, &set(&stage, "set", more)).await;
    let set = counted(&stage, &name, 1, 0).await;
    let conditions = set.status.unwrap().conditions;
    let condition = conditions
        .iter()
        .find(|one| one.type_ == "Upgradable")
        .unwrap();
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("False", "MoreThanImages")
    );
    stage.rest().await;
    let now = stage.find::<Pod>("web").await.unwrap();
    assert_eq!(
        now.spec.unwrap().containers[0].image.as_deref(),
        Some("log:1")
    );
    let recreated = stage.create(&pod("recreated", "web")).await;
    assert_eq!(
        recreated.spec.unwrap().containers[0].image.as_deref(),
        Some("log:2")
    );
    counted(&stage, &name, 2, 1).await;
    stage.rest().await;
}

async fn a_set_that_is_deleted_leaves_its_pods_alone(stage: Stage) {
    let name = make(&stage, "set", sidecar("log:1")).await;
    let before = stage.create(&pod("web", "web")).await;
    counted(&stage, &name, 1, 1).await;
    stage.rest().await;
    sets(&stage)
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    stage
        .until_in(&sets(&stage), &name, "gone", |set| set.is_none())
        .await;
    stage.rest().await;
    let after = stage.find::<Pod>("web").await.unwrap();
    assert_eq!(
        (after.uid(), containers(&after)),
        (before.uid(), containers(&before))
    );
    if stage.cluster().is_some() {
        assert_eq!(
            containers(&stage.create(&pod("later", "web")).await),
            ["main"]
        );
    }
    stage.rest().await;
}

async fn injection_that_is_paused_leaves_new_pods_alone(stage: Stage) {
    let mut spec = sidecar("log:1");
    spec["injectionStrategy"] = json!({ "paused": true });
    let name = make(&stage, "set", spec).await;
    assert_eq!(
        containers(&stage.create(&pod("web", "web")).await),
        ["main"]
    );
    counted(&stage, &name, 1, 0).await;
    stage.rest().await;
}

async fn what_the_documentation_of_openkruise_shows_applies_as_it_is(stage: Stage) {
    let all: Vec<Value> = serde_saphyr::from_multiple(include_str!("openkruise.yaml")).unwrap();
    assert_eq!(all.len(), 4);
    for mut documented in all {
        // Scenarios are played side by side: each has sets, labels and a namespace of its own.
        let named = documented["metadata"]["name"].as_str().unwrap().to_owned();
        documented["metadata"]["name"] = json!(name(&stage, &named));
        documented["spec"]["namespace"] = json!(stage.namespace());
        let made = apply(&stage, &documented).await;
        let labels = made.spec.selector.clone().unwrap().match_labels.unwrap();
        until(&stage, &made.name_any(), "known", |_| true).await;
        stage.rest().await;
        let mut subject = pod(&named, "");
        subject.metadata.labels = Some(labels);
        let injected = stage.create(&subject).await;
        for sidecar in &made.spec.containers {
            assert!(containers(&injected).contains(&sidecar.container.name.as_str()));
        }
        stage.rest().await;
    }
}

async fn missing_fields_get_their_defaults(stage: Stage) {
    let mount = |name: &str| json!({ "name": name, "mountPath": format!("/{name}") });
    let spec = json!({
        "containers": [{
            "name": "log",
            "image": "registry:5000/log",
            "ports": [{ "containerPort": 80 }],
            "readinessProbe": { "httpGet": { "port": 80 } },
            "env": [{ "name": "N", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
            "volumeMounts": [mount("config"), mount("host")],
        }],
        "initContainers": [{ "name": "first", "image": "first:1" }],
        "volumes": [
            { "name": "config", "configMap": { "name": "c" } },
            { "name": "host", "hostPath": { "path": "/tmp" } },
        ],
    });
    let made = apply(&stage, &set(&stage, "set", spec)).await;
    let spec = serde_json::to_value(&made.spec).unwrap();
    let strategy = &spec["updateStrategy"];
    assert_eq!(strategy["type"], "RollingUpdate");
    assert_eq!(strategy["maxUnavailable"], 1);
    assert_eq!(strategy["partition"], 0);
    let container = &spec["containers"][0];
    assert_eq!(container["podInjectPolicy"], "BeforeAppContainer");
    assert_eq!(container["shareVolumePolicy"]["type"], "disabled");
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["terminationMessagePath"], "/dev/termination-log");
    assert_eq!(container["terminationMessagePolicy"], "File");
    assert_eq!(container["ports"][0]["protocol"], "TCP");
    let field = &container["env"][0]["valueFrom"]["fieldRef"];
    assert_eq!(field["apiVersion"], "v1");
    let probe = json!({
        "httpGet": { "port": 80, "path": "/", "scheme": "HTTP" },
        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
    });
    assert_eq!(container["readinessProbe"], probe);
    let init = &spec["initContainers"][0];
    assert_eq!(init["podInjectPolicy"], Value::Null);
    assert_eq!(init["shareVolumePolicy"]["type"], "disabled");
    assert_eq!(init["imagePullPolicy"], "IfNotPresent");
    assert_eq!(spec["volumes"][0]["configMap"]["defaultMode"], 0o644);
    assert_eq!(spec["volumes"][1]["hostPath"]["type"], "");
    let again = apply(&stage, &set(&stage, "set", spec)).await;
    assert_eq!(again.spec, made.spec);
    stage.rest().await;
}

async fn overlapping_sets_may_not_add_the_same_container(stage: Stage) {
    make(&stage, "one", sidecar("log:1")).await;
    let same: SidecarSet = serde_json::from_value(set(&stage, "two", sidecar("log:2"))).unwrap();
    let refused = sets(&stage)
        .create(&PostParams::default(), &same)
        .await
        .unwrap_err();
    let message = refused.to_string();
    assert!(
        message.contains("spec.containers[0].name") && message.contains(&name(&stage, "one")),
        "{message}"
    );
    let mut apart = sidecar("log:2");
    apart["selector"] = json!({ "matchLabels": { "app": "db" } });
    make(&stage, "two", apart).await;
}

/// A set, and as many pods of it that are ready.
async fn running(stage: &Stage, pods: usize, strategy: Value) -> String {
    let mut spec = sidecar("log:1");
    spec["updateStrategy"] = strategy;
    let name = make(stage, "set", spec).await;
    for number in 0..pods {
        stage.create(&pod(&format!("web-{number}"), "web")).await;
        // The youngest goes first: which one that is must not depend on who was quicker.
        stage.rest().await;
    }
    let all = i32::try_from(pods).unwrap();
    let ready =
        |status: &SidecarSetStatus| status.updated_ready_pods == all && status.ready_pods == all;
    until(stage, &name, "ready", ready).await;
    stage.rest().await;
    name
}

/// Gives the sidecar another image.
async fn release(stage: &Stage, image: &str, strategy: Value) {
    let mut spec = sidecar(image);
    spec["updateStrategy"] = strategy;
    apply(stage, &set(stage, "set", spec)).await;
}

async fn images(stage: &Stage) -> Vec<String> {
    let pods = stage.list::<Pod>().await;
    let image = |pod: &Pod| {
        pod.spec.as_ref().unwrap().containers[0]
            .image
            .clone()
            .unwrap()
    };
    let mut images: Vec<String> = pods.iter().map(image).collect();
    images.sort();
    images
}

async fn the_status_counts_pods(stage: Stage) {
    let name = running(&stage, 3, json!({})).await;
    let set = counted(&stage, &name, 3, 3).await;
    let status = set.status.unwrap();
    assert_eq!((status.ready_pods, status.updated_ready_pods), (3, 3));
    stage.delete::<Pod>("web-0").await;
    counted(&stage, &name, 2, 2).await;
    stage.rest().await;
}

async fn an_image_is_rolled_out_in_place_one_pod_at_a_time(stage: Stage) {
    let name = running(&stage, 3, json!({})).await;
    let before: Vec<_> = stage
        .list::<Pod>()
        .await
        .iter()
        .map(ResourceExt::uid)
        .collect();
    let audience = audience::watch(&stage);
    release(&stage, "log:2", json!({})).await;
    until(&stage, &name, "rolled out", |status| {
        status.updated_ready_pods == 3
    })
    .await;
    stage.rest().await;
    assert_eq!(images(&stage).await, ["log:2"; 3]);
    let pods = stage.list::<Pod>().await;
    let after: Vec<_> = pods.iter().map(ResourceExt::uid).collect();
    assert_eq!(before, after, "in place");
    for pod in &pods {
        let statuses = pod
            .status
            .as_ref()
            .unwrap()
            .container_statuses
            .as_ref()
            .unwrap();
        let restarts = |name: &str| {
            statuses
                .iter()
                .find(|one| one.name == name)
                .unwrap()
                .restart_count
        };
        assert_eq!((restarts("log"), restarts("main")), (1, 0));
    }
    assert_eq!(audience.most_unready(), 1);
}

async fn max_unavailable_lets_more_go_at_once(stage: Stage) {
    let strategy = json!({ "maxUnavailable": "50%" });
    let name = running(&stage, 4, strategy.clone()).await;
    let audience = audience::watch(&stage);
    release(&stage, "log:2", strategy).await;
    until(&stage, &name, "rolled out", |status| {
        status.updated_ready_pods == 4
    })
    .await;
    stage.rest().await;
    assert_eq!(audience.most_unready(), 2);
}

async fn a_partition_keeps_pods_as_they_are(stage: Stage) {
    let name = running(&stage, 3, json!({})).await;
    release(&stage, "log:2", json!({ "partition": 2 })).await;
    until(&stage, &name, "rolled out", |status| {
        status.updated_ready_pods == 1 && status.ready_pods == 3
    })
    .await;
    stage.rest().await;
    assert_eq!(images(&stage).await, ["log:1", "log:1", "log:2"]);
    release(&stage, "log:2", json!({ "partition": 0 })).await;
    until(&stage, &name, "rolled out", |status| {
        status.updated_ready_pods == 3
    })
    .await;
    stage.rest().await;
}

async fn paused_nothing_is_rolled_out(stage: Stage) {
    let name = running(&stage, 2, json!({})).await;
    release(&stage, "log:2", json!({ "paused": true })).await;
    counted(&stage, &name, 2, 0).await;
    stage.rest().await;
    assert_eq!(images(&stage).await, ["log:1"; 2]);
    release(&stage, "log:2", json!({ "type": "NotUpdate" })).await;
    stage.rest().await;
    assert_eq!(images(&stage).await, ["log:1"; 2]);
    release(&stage, "log:2", json!({})).await;
    until(&stage, &name, "rolled out", |status| {
        status.updated_ready_pods == 2
    })
    .await;
    stage.rest().await;
}

async fn only_selected_pods_are_upgraded(stage: Stage) {
    let name = running(&stage, 3, json!({})).await;
    let strategy = json!({ "selector": { "matchLabels": { "name": "web-1" } } });
    release(&stage, "log:2", strategy).await;
    until(&stage, &name, "rolled out", |status| {
        status.updated_ready_pods == 1 && status.ready_pods == 3
    })
    .await;
    stage.rest().await;
    let canary = stage.find::<Pod>("web-1").await.unwrap();
    assert_eq!(
        canary.spec.unwrap().containers[0].image.as_deref(),
        Some("log:2")
    );
    assert_eq!(images(&stage).await, ["log:1", "log:1", "log:2"]);
}

async fn a_bad_image_stops_after_one_pod_and_a_good_one_heals_it(stage: Stage) {
    if let Some(cluster) = stage.cluster() {
        cluster
            .node()
            .remove_image("log:bad", "there is no such image");
    }
    let name = running(&stage, 3, json!({})).await;
    release(&stage, "log:bad", json!({})).await;
    until(&stage, &name, "stopped", |status| {
        status.updated_pods == 1 && status.ready_pods == 2
    })
    .await;
    stage.rest().await;
    assert_eq!(images(&stage).await, ["log:1", "log:1", "log:bad"]);
    release(&stage, "log:2", json!({})).await;
    until(&stage, &name, "rolled out", |status| {
        status.updated_ready_pods == 3
    })
    .await;
    stage.rest().await;
    assert_eq!(images(&stage).await, ["log:2"; 3]);
}
