//! Adopting: what nobody controls and matches, unless the owner is about to go.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PropagationPolicy},
};
use windlass::{
    Action, Context, Controller, Declare, Operator, Reconciler, Result, handle::Controlled, labels,
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
