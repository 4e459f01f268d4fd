//! A change of values alone is a patch, which costs the API server less than an apply; who owns
//! which field is what it would be after applies.

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::{Value, json};
use windlass::{Controller, Operator, Reconciler, handle::Owned, object, prelude::*};
use windlass_cluster::{Failure, TestCluster};

use crate::stage::{secret, writes};

/// Makes what the annotations of its secret say.
struct Painter {
    deployments: Owned<Deployment>,
    maps: Owned<ConfigMap>,
}

impl Painter {
    fn declare(declare: &mut Declare<Secret>) -> Self {
        Self {
            deployments: declare.owns(),
            maps: declare.owns(),
        }
    }
}

impl Reconciler for Painter {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let wanted = |name: &str| secret.annotations().get(name).cloned();
        let image = wanted("image").unwrap_or_else(|| "nginx:1".to_owned());
        let mut deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"name": secret.name_any()},
            "spec": {
                "selector": {"matchLabels": {"app": "a"}},
                "template": {
                    "metadata": {"labels": {"app": "a"}},
                    "spec": {"containers": [
                        {"name": "side", "image": "side"},
                        {"name": "main", "image": image, "ports": [{"containerPort": 80}]},
                    ]},
                },
            },
        }))?;
        if let (Some(spec), Some(replicas)) = (&mut deployment.spec, wanted("replicas")) {
            spec.replicas = Some(replicas.parse()?);
        }
        self.deployments.apply(ctx, deployment).await?;
        let mut map = object!(ConfigMap {
            metadata: { name: secret.name_any() },
            data: { "text": wanted("text").unwrap_or_default() },
        });
        if let (Some(data), Some(more)) = (&mut map.data, wanted("more")) {
            data.insert("more".to_owned(), more);
        }
        self.maps.apply(ctx, map).await?;
        Ok(Action::done())
    }
}

async fn start(cluster: &TestCluster) {
    let controller = Controller::of_existing().reconciler(Painter::declare);
    cluster
        .start(Operator::new("painter").controller(controller))
        .await;
    cluster.create(secret("one")).await;
    cluster.settle().await;
}

/// Changes what is wanted. The writes that followed.
async fn want(cluster: &TestCluster, wanted: &Value) -> Vec<String> {
    let before = writes(cluster, "painter").len();
    let patch = json!({"metadata": {"annotations": wanted}});
    cluster.patch::<Secret>("one", patch).await;
    cluster.settle().await;
    writes(cluster, "painter").split_off(before)
}

/// Who owns fields of a `ConfigMap`, and which of its data.
async fn owners(cluster: &TestCluster) -> Vec<(String, String)> {
    let map = cluster.get::<ConfigMap>("one").await;
    let entries = map.metadata.managed_fields.unwrap_or_default();
    let data = |fields: Option<&Value>| {
        let data = fields.and_then(|fields| fields["f:data"].as_object());
        let keys = data.into_iter().flat_map(|data| data.keys());
        keys.filter(|key| *key != ".").cloned().collect::<Vec<_>>()
    };
    let owners = entries.iter().map(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        let (manager, operation) = (entry.manager.as_deref(), entry.operation.as_deref());
        (
            format!(
                "{} {}",
                manager.unwrap_or_default(),
                operation.unwrap_or_default()
            ),
            data(fields).join(" "),
        )
    });
    owners.collect()
}

fn owner(name: &str, data: &str) -> (String, String) {
    (name.to_owned(), data.to_owned())
}

const MAP: &str = "patch configmaps one in default";
const DEPLOYMENT: &str = "patch deployments.apps one in default";

#[windlass_cluster::test]
async fn changed_values_are_patched_by_one_request_and_owned(cluster: TestCluster) {
    start(&cluster).await;
    assert_eq!(
        want(&cluster, &json!({"image": "nginx:2"})).await,
        [DEPLOYMENT]
    );
    assert_eq!(want(&cluster, &json!({"text": "2"})).await, [MAP]);
    let deployment = cluster.get::<Deployment>("one").await;
    let pod = deployment.spec.unwrap().template.spec.unwrap();
    let images: Vec<_> = pod
        .containers
        .iter()
        .map(|one| one.image.as_deref().unwrap_or_default())
        .collect();
    assert_eq!(images, ["side", "nginx:2"]);
    let patched = [
        owner("painter Apply", ""),
        owner("painter-values Update", "f:text"),
    ];
    assert_eq!(owners(&cluster).await, patched);

    // The operator knows it for its own: nothing is sent again, also after a restart.
    let before = writes(&cluster, "painter").len();
    let touch = json!({"metadata": {"annotations": {"touched": "yes"}}});
    cluster.patch::<ConfigMap>("one", touch.clone()).await;
    cluster.patch::<Deployment>("one", touch).await;
    cluster.restart_operators().await;
    cluster.settle().await;
    assert_eq!(writes(&cluster, "painter").len(), before);
    assert_eq!(
        want(&cluster, &json!({"image": "nginx:3"})).await,
        [DEPLOYMENT]
    );

    // A new field is one apply, and a drift is repaired by one.
    assert_eq!(want(&cluster, &json!({"more": "x"})).await, [MAP]);
    let drift = json!({"data": {"text": "drifted"}});
    cluster.patch::<ConfigMap>("one", drift).await;
    cluster.settle().await;
    let data = cluster.get::<ConfigMap>("one").await.data.unwrap();
    assert_eq!((data["text"].as_str(), data["more"].as_str()), ("2", "x"));
}

#[windlass_cluster::test]
async fn patched_field_that_is_no_longer_wanted_is_removed(cluster: TestCluster) {
    start(&cluster).await;
    want(&cluster, &json!({"replicas": "3", "more": "1"})).await;
    let changed = want(&cluster, &json!({"replicas": "5", "more": "2"})).await;
    assert_eq!(changed, [DEPLOYMENT, MAP]);
    cluster.restart_operators().await;
    // First the fields of the patch are given to the applies, then one gives the field up.
    let given_up = want(&cluster, &json!({"replicas": null, "more": null})).await;
    assert_eq!(given_up, [DEPLOYMENT, DEPLOYMENT, MAP, MAP]);
    let map = cluster.get::<ConfigMap>("one").await;
    assert_eq!(map.data.unwrap().len(), 1);
    assert_eq!(owners(&cluster).await, [owner("painter Apply", "f:text")]);
    let deployment = cluster.get::<Deployment>("one").await;
    assert_eq!(deployment.spec.unwrap().replicas, Some(1), "the default");
    // From then on it is as if nothing had been patched.
    want(&cluster, &json!({"more": "3"})).await;
    assert_eq!(want(&cluster, &json!({"more": null})).await, [MAP]);
}

#[windlass_cluster::test]
async fn patched_field_that_another_applies_too_stays(cluster: TestCluster) {
    start(&cluster).await;
    want(&cluster, &json!({"more": "1"})).await;
    want(&cluster, &json!({"more": "2"})).await;
    let maps: Api<DynamicObject> = Api::default_namespaced_with(
        cluster.client(),
        &kube::core::ApiResource::erase::<ConfigMap>(&()),
    );
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"},
        "data": {"more": "2"},
    });
    let params = PatchParams::apply("other");
    maps.patch("one", &params, &Patch::Apply(&theirs))
        .await
        .unwrap();
    want(&cluster, &json!({"more": null})).await;
    let map = cluster.get::<ConfigMap>("one").await;
    assert_eq!(map.data.unwrap()["more"], "2");
    let owners = owners(&cluster).await;
    assert!(
        owners.contains(&owner("other Apply", "f:more")),
        "{owners:?}"
    );
    assert!(
        owners.contains(&owner("painter Apply", "f:text")),
        "{owners:?}"
    );
    assert_eq!(owners.len(), 2);
}

#[windlass_cluster::test]
async fn patch_that_meets_a_conflict_becomes_an_apply(cluster: TestCluster) {
    start(&cluster).await;
    let conflict = Failure::with(409).by("painter").on("configmaps").writes();
    cluster.fail(conflict.times(1));
    assert_eq!(want(&cluster, &json!({"text": "2"})).await, [MAP, MAP]);
    let map = cluster.get::<ConfigMap>("one").await;
    assert_eq!(map.data.unwrap()["text"], "2");
    assert_eq!(owners(&cluster).await, [owner("painter Apply", "f:text")]);
}
