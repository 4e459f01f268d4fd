//! Adopting: what nobody controls and matches, unless the owner is about to go.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PropagationPolicy},
};
use windlass::{
    Action, Context, Controller, Declare, Operator, Reconciler, Result,
    handle::{Controlled, Owned},
    labels,
};
use windlass_cluster::{TestCluster, minutes, seconds};

use crate::stage::{map, secret};

/// Adopts every `ConfigMap` with a label.
struct Adopter(Controlled<ConfigMap>);

impl Reconciler for Adopter {
    type Object = Secret;

    async fn reconcile(&self, _: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        for map in self.0.candidates(ctx, labels([("adopt", "me")])).await? {
            self.0.adopt(ctx, &map).await?;
        }
        Ok(Action::done())
    }
}

fn operator() -> Operator {
    let declare = |declare: &mut Declare<Secret>| Adopter(declare.adopts());
    Operator::new("adopter").controller(Controller::of_existing().reconciler(declare))
}

fn orphan() -> ConfigMap {
    let mut orphan = map("orphan", &[]);
    orphan
        .labels_mut()
        .insert("adopt".to_owned(), "me".to_owned());
    orphan
}

#[windlass_cluster::test]
async fn orphan_that_matches_is_adopted(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(orphan()).await;
    cluster.create(secret("owner")).await;
    cluster.settle().await;
    let owners = cluster.get::<ConfigMap>("orphan").await;
    assert_eq!(owners.owner_references()[0].name, "owner");
}

/// Deleting with `--cascade=orphan` used to lose what it should keep: the collector cut the object
/// loose, the controller, whose cache did not show the deletion yet, adopted it again, and so it went
/// with its owner.
#[windlass_cluster::test]
async fn orphaned_object_is_not_adopted_again_when_the_watch_is_late(cluster: TestCluster) {
    cluster.start(operator()).await;
    cluster.create(orphan()).await;
    cluster.create(secret("owner")).await;
    cluster.settle().await;
    cluster.delay_watch("adopter", "secrets", seconds(10));
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "default");
    let keep = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    secrets.delete("owner", &keep).await.unwrap();
    cluster.advance(minutes(2)).await;
    assert!(cluster.find::<Secret>("owner").await.is_none());
    let kept = cluster.find::<ConfigMap>("orphan").await;
    let kept = kept.expect("orphaned, so it stays");
    assert!(kept.owner_references().is_empty());
}

/// Keeps a `ConfigMap` as the Secret says, and takes its time before it writes.
struct Copier(Owned<ConfigMap>);

impl Reconciler for Copier {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let kind = secret.type_.clone().unwrap_or_default();
        let note = secret.annotations().get("note").cloned();
        tokio::time::sleep(seconds(2)).await;
        let data = [("type", kind), ("note", note.unwrap_or_default())];
        let data: Vec<_> = data.iter().map(|(key, text)| (*key, &**text)).collect();
        self.0.apply(ctx, map("copy", &data)).await?;
        Ok(Action::done())
    }
}

/// As above, by an apply: the intent holds the owner reference, and the cache shows neither that
/// the owner is being deleted nor that the object was orphaned.
#[windlass_cluster::test]
async fn orphaned_object_is_not_applied_again_when_the_watch_is_late(cluster: TestCluster) {
    let declare = |declare: &mut Declare<Secret>| Copier(declare.owns());
    let controller = Controller::of_existing().reconciler(declare);
    cluster
        .start(Operator::new("copier").controller(controller))
        .await;
    cluster.create(secret("owner")).await;
    cluster.advance(seconds(10)).await;
    cluster.delay_watch("copier", "configmaps", seconds(20));
    let note = serde_json::json!({"metadata": {"annotations": {"note": "changed"}}});
    cluster.patch::<Secret>("owner", note).await;
    tokio::time::sleep(seconds(1)).await;
    cluster.delay_watch("copier", "secrets", seconds(20));
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "default");
    let keep = DeleteParams::orphan();
    secrets.delete("owner", &keep).await.unwrap();
    cluster.advance(minutes(2)).await;
    assert!(cluster.find::<Secret>("owner").await.is_none());
    let kept = cluster.find::<ConfigMap>("copy").await;
    let kept = kept.expect("orphaned, so it stays");
    assert!(kept.owner_references().is_empty());
    assert_eq!(kept.data.unwrap()["note"], "", "and nothing was applied");
}

/// A status written by another between the read and the apply costs a second request, not an error.
#[windlass_cluster::test]
async fn object_changed_since_it_was_read_is_applied_at_its_new_version(cluster: TestCluster) {
    let declare = |declare: &mut Declare<Secret>| Copier(declare.owns());
    let controller = Controller::of_existing().reconciler(declare);
    cluster
        .start(Operator::new("copier").controller(controller))
        .await;
    cluster.create(secret("owner")).await;
    cluster.advance(seconds(10)).await;
    cluster.delay_watch("copier", "configmaps", seconds(20));
    let other = serde_json::json!({"metadata": {"labels": {"by": "another"}}});
    cluster.patch::<ConfigMap>("copy", other).await;
    let note = serde_json::json!({"metadata": {"annotations": {"note": "changed"}}});
    cluster.patch::<Secret>("owner", note).await;
    tokio::time::sleep(seconds(5)).await;
    let copy = cluster.get::<ConfigMap>("copy").await;
    assert_eq!(copy.labels()["by"], "another");
    assert_eq!(copy.data.unwrap()["note"], "changed");
    let errors = "controller_runtime_reconcile_errors_total";
    assert!(cluster.metric("copier", errors, "secret").abs() < f64::EPSILON);
}
