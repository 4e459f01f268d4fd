//! What the webhooks refuse, each with the path of the field; and that they lock nobody out.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use sidecarset_operator::{SidecarSet, operator};
use windlass_cluster::{Failure, TestCluster};

const NAME: &str = "sidecarset-operator";

/// Spoils the spec of a set.
type Change = fn(&mut Value);

fn set(change: impl FnOnce(&mut Value)) -> SidecarSet {
    let mut spec = json!({
        "selector": { "matchLabels": { "app": "web" } },
        "containers": [{ "name": "log", "image": "log:1" }],
    });
    change(&mut spec);
    SidecarSet::new("set", serde_json::from_value(spec).unwrap())
}

async fn refusal(cluster: &TestCluster, set: &SidecarSet) -> Vec<(String, String)> {
    let sets: Api<SidecarSet> = Api::all(cluster.client());
    let made = sets.create(&PostParams::default(), set).await;
    let Err(kube::Error::Api(status)) = made else {
        panic!("it was allowed: {set:#?}");
    };
    assert_eq!(status.code, 422, "{status:?}");
    let causes = status.details.expect("details").causes;
    causes
        .into_iter()
        .map(|cause| (cause.field, cause.message))
        .collect()
}

#[windlass_cluster::test]
async fn each_bad_spec_is_refused_with_the_path_of_its_field(cluster: TestCluster) {
    cluster.start(operator()).await;
    let cases: &[(&str, Change)] = &[
        ("spec.selector", |spec| spec["selector"] = Value::Null),
        ("spec.selector", |spec| spec["selector"] = json!({})),
        ("spec.selector", |spec| {
            spec["selector"] = json!({ "matchExpressions": [{ "key": "a", "operator": "Near" }] });
        }),
        ("spec.selector.matchExpressions[0].values", |spec| {
            spec["selector"] = json!({ "matchExpressions": [{ "key": "a", "operator": "In" }] });
        }),
        ("spec.selector.matchExpressions[0].values", |spec| {
            let exists = json!({ "key": "a", "operator": "Exists", "values": ["b"] });
            spec["selector"] = json!({ "matchExpressions": [exists] });
        }),
        ("spec.namespaceSelector", |spec| {
            spec["namespaceSelector"] = json!({});
        }),
        ("spec.containers", |spec| spec["containers"] = json!([])),
        ("spec.containers[0].name", |spec| {
            spec["containers"][0]["name"] = json!("Log");
        }),
        ("spec.containers[0].image", |spec| {
            spec["containers"][0]["image"] = Value::Null;
        }),
        ("spec.containers[0].imagePullPolicy", |spec| {
            spec["containers"][0]["imagePullPolicy"] = json!("Sometimes");
        }),
        ("spec.containers[0].ports[0].containerPort", |spec| {
            spec["containers"][0]["ports"] = json!([{ "containerPort": 0 }]);
        }),
        ("spec.containers[0].env[0].name", |spec| {
            spec["containers"][0]["env"] = json!([{ "name": "A=B" }]);
        }),
        ("spec.containers[0].volumeMounts[0].name", |spec| {
            spec["containers"][0]["volumeMounts"] = json!([{ "name": "none", "mountPath": "/x" }]);
        }),
        ("spec.containers[0].volumeMounts[1].mountPath", |spec| {
            let mount = json!({ "name": "v", "mountPath": "/x" });
            spec["volumes"] = json!([{ "name": "v", "emptyDir": {} }]);
            spec["containers"][0]["volumeMounts"] = json!([mount, mount]);
        }),
        ("spec.containers[0].ports[0].protocol", |spec| {
            spec["containers"][0]["ports"] = json!([{ "containerPort": 80, "protocol": "ICMP" }]);
        }),
        ("spec.containers[0].transferEnv[0].envName", |spec| {
            spec["containers"][0]["transferEnv"] = json!([{ "sourceContainerName": "main" }]);
        }),
        ("spec.containers[1].name", |spec| {
            spec["containers"] =
                json!([{ "name": "log", "image": "a" }, { "name": "log", "image": "b" }]);
        }),
        ("spec.initContainers[0].name", |spec| {
            spec["initContainers"] = json!([{ "name": "log", "image": "a" }]);
        }),
        (
            "spec.containers[0].transferEnv[0].sourceContainerName",
            |spec| {
                spec["containers"][0]["transferEnv"] = json!([{ "envName": "A" }]);
            },
        ),
        ("spec.volumes[1].name", |spec| {
            spec["volumes"] =
                json!([{ "name": "v", "emptyDir": {} }, { "name": "v", "emptyDir": {} }]);
        }),
        ("spec.updateStrategy.maxUnavailable", |spec| {
            spec["updateStrategy"] = json!({ "maxUnavailable": -1 });
        }),
        ("spec.updateStrategy.maxUnavailable", |spec| {
            spec["updateStrategy"] = json!({ "maxUnavailable": "many" });
        }),
        ("spec.updateStrategy.partition", |spec| {
            spec["updateStrategy"] = json!({ "partition": "120%" });
        }),
        ("spec.updateStrategy.partition", |spec| {
            spec["updateStrategy"] =
                json!({ "partition": 1, "selector": { "matchLabels": { "a": "b" } } });
        }),
        // Enums of the schema.
        ("spec.updateStrategy.type", |spec| {
            spec["updateStrategy"] = json!({ "type": "Recreate" });
        }),
        ("spec.containers[0].podInjectPolicy", |spec| {
            spec["containers"][0]["podInjectPolicy"] = json!("Beside");
        }),
        ("spec.containers[0].shareVolumePolicy.type", |spec| {
            spec["containers"][0]["shareVolumePolicy"] = json!({ "type": "perhaps" });
        }),
    ];
    for (path, change) in cases {
        let causes = refusal(&cluster, &set(change)).await;
        assert!(
            causes.iter().any(|(field, _)| field == path),
            "{path}: {causes:?}"
        );
    }
    println!("{} bad specs, each refused with its field", cases.len());
}

#[windlass_cluster::test]
async fn everything_wrong_is_reported_at_once(cluster: TestCluster) {
    cluster.start(operator()).await;
    let wrong = set(|spec| {
        spec["selector"] = json!({});
        spec["containers"] = json!([{ "name": "A", "image": "" }]);
    });
    let causes = refusal(&cluster, &wrong).await;
    let mut fields: Vec<&str> = causes.iter().map(|(field, _)| field.as_str()).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "spec.containers[0].image",
            "spec.containers[0].name",
            "spec.selector"
        ]
    );
}

fn pod(name: &str, labels: &Value) -> Pod {
    let pod = json!({
        "metadata": { "name": name, "labels": labels },
        "spec": { "containers": [{ "name": "main", "image": "main:1" }] },
    });
    serde_json::from_value(pod).unwrap()
}

/// Its webhook is down for as long as it cannot watch anything: it never gets to serve.
#[windlass_cluster::test]
async fn down_it_holds_up_no_pods_of_its_own_nor_of_the_system(cluster: TestCluster) {
    let description = operator().description();
    let hook = description
        .webhooks
        .iter()
        .find(|hook| hook.resource == "pods")
        .unwrap();
    assert!(!hook.ignore_failures && hook.operations == ["CREATE"]);
    // Only its configuration is there: nobody answers.
    let reach = windlass::manifests::webhook::Reach::Service("nowhere".to_owned());
    let configuration = windlass::manifests::webhook::mutating(&description, &reach).unwrap();
    let configurations = Api::all(cluster.client());
    configurations
        .create(&PostParams::default(), &configuration)
        .await
        .unwrap();
    let pods = |namespace: &str| -> Api<Pod> { Api::namespaced(cluster.client(), namespace) };
    let params = PostParams::default();
    let waits = pods("default")
        .create(&params, &pod("web", &json!({})))
        .await
        .unwrap_err();
    assert!(
        waits.to_string().contains("failed calling webhook"),
        "{waits}"
    );
    let own = json!({ "app.kubernetes.io/name": NAME });
    pods("default")
        .create(&params, &pod("operator", &own))
        .await
        .unwrap();
    pods("kube-system")
        .create(&params, &pod("web", &json!({})))
        .await
        .unwrap();
    pods("kube-public")
        .create(&params, &pod("web", &json!({})))
        .await
        .unwrap();
}

#[windlass_cluster::test]
async fn every_right_is_needed(cluster: TestCluster) {
    cluster.start(operator()).await;
    let exceptions = [
        (
            "patch sidecarsets.apps.kruise.io",
            "takes off a finalizer that an earlier version of the operator put there",
        ),
        (
            "patch events.events.k8s.io",
            "counts an event that happens again within minutes",
        ),
    ];
    let shown = cluster
        .every_right_is_needed(&exceptions, |cluster| async move {
            let sets: Api<SidecarSet> = Api::all(cluster.client());
            let made = sets.create(&PostParams::default(), &set(|_| {})).await;
            made.unwrap();
            cluster.settle().await;
            cluster.create(pod("web", &json!({ "app": "web" }))).await;
            cluster.settle().await;
            let image = json!({ "spec": { "containers": [{ "name": "log", "image": "log:2" }] } });
            let patch = kube::api::Patch::Merge(image);
            sets.patch("set", &kube::api::PatchParams::default(), &patch)
                .await
                .unwrap();
            cluster.settle().await;
            // An API server that cannot stream lists is asked for pages.
            let configuration = "webhookconfigurations.admissionregistration.k8s.io";
            let (mutating, validating) = (
                format!("mutating{configuration}"),
                format!("validating{configuration}"),
            );
            let sets = "sidecarsets.apps.kruise.io";
            for resource in [
                "pods",
                "namespaces",
                sets,
                "secrets",
                &mutating,
                &validating,
            ] {
                cluster.fail(Failure::with(400).by(NAME).on(resource).times(1));
            }
            cluster.restart_operators().await;
        })
        .await;
    assert!(shown >= 8, "{shown}");
}

#[test]
fn the_manifests_in_the_repository_are_current() {
    windlass_cluster::manifests_are_current(&operator(), env!("CARGO_MANIFEST_DIR"));
}
