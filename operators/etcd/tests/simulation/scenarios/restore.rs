//! Clusters that begin again from a backup.

use etcd_operator::backup::ClusterReference;
use etcd_operator::restore::{EtcdRestore, EtcdRestoreSpec, RestoreStatus};
use etcd_operator::{EtcdCluster, EtcdClusterStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use kube::ResourceExt;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::backup::{backup, source};
use super::play::{LOOK, PATIENCE, Scene, because, etcd, with_volumes};
use crate::database::puts_of;
use crate::vault::SECRET_KEY;

/// Fields that depend on how often something went wrong on the way.
const COUNTS: [&str; 7] = [
    "attempts",
    "incarnation",
    "token",
    "seed",
    "completionDate",
    "snapshot",
    "etcd.database.coreos.com/restore",
];

pub(crate) fn restore(cluster: &str) -> EtcdRestore {
    let spec = EtcdRestoreSpec {
        s3: Some(source()),
        etcd_cluster: ClusterReference {
            name: cluster.to_owned(),
        },
        keep_old_data_seconds: Some(60),
        ..EtcdRestoreSpec::default()
    };
    EtcdRestore::new("r", spec)
}

impl Scene {
    /// Waits until the status of the restore is as expected.
    async fn until_restore(
        &self,
        what: &str,
        is: impl Fn(&RestoreStatus) -> bool,
    ) -> RestoreStatus {
        let limit = Instant::now() + PATIENCE;
        loop {
            let found = self.stage.find::<EtcdRestore>("r").await;
            let status = found.and_then(|found| found.status).unwrap_or_default();
            if is(&status) {
                return status;
            }
            assert!(
                Instant::now() < limit,
                "it is not {what} in time: {status:#?}"
            );
            sleep(LOOK).await;
        }
    }

    /// A cluster of which there is a backup, with what was written to it.
    async fn backed_up(&self, cluster: &EtcdCluster, size: usize) -> Vec<String> {
        self.with_secret(Some(SECRET_KEY)).await;
        self.cluster.do_not_compare(&COUNTS);
        self.create(cluster).await;
        self.ready("etcd", size).await;
        self.progress().await;
        let before = self.acknowledged();
        self.stage.create(&backup("b")).await;
        self.until_backup("b", "taken", |status| status.succeeded)
            .await;
        let object = self.vault.object("etcd.backup").expect("an object");
        let puts = puts_of(&object).expect("a snapshot that is whole");
        assert!(puts.len() >= before, "{} of {before} writes", puts.len());
        puts.into_iter().map(|(_, value)| value).collect()
    }

    /// The cluster serves what is in the backup, and was restored in one piece.
    async fn serves(&self, name: &str, size: usize, values: &[String]) -> EtcdClusterStatus {
        self.until_restore("done", |status| status.succeeded).await;
        let status = self.ready(name, size).await;
        assert_eq!(status.seed, None);
        let writes = self.world.writes(&format!(".{name}.default.svc:"));
        assert_eq!(writes[..values.len()], *values);
        let service = self.stage.find::<Service>(&format!("{name}-client")).await;
        let selector = service.and_then(|service| service.spec?.selector);
        let selected = selector.expect("clients are let in")[etcd_operator::CLUSTER_UID].clone();
        assert_eq!(Some(selected), status.token, "of this incarnation alone");
        self.only_one_was_begun();
        self.keeps_its_secret().await;
        status
    }

    async fn lose(&self, count: usize) {
        for gone in self.pods().await.iter().take(count) {
            self.stage.delete::<Pod>(gone).await;
        }
        let lost = |status: &EtcdClusterStatus| because(status, "Degraded", "QuorumLost");
        self.until("etcd", "given up", lost).await;
        self.end_writers();
    }
}

pub(crate) async fn data_lost_by_all_members_is_restored(scene: Scene) {
    let values = scene.backed_up(&etcd("etcd", 3), 3).await;
    let before = scene.status("etcd").await;
    scene.lose(3).await;
    scene.stage.create(&restore("etcd")).await;
    let after = scene.serves("etcd", 3, &values).await;
    assert_ne!(before.cluster_id, after.cluster_id);
    scene.stage.rest().await;
}

pub(crate) async fn volumes_from_before_are_kept_and_then_deleted(scene: Scene) {
    let values = scene.backed_up(&with_volumes(etcd("etcd", 3)), 3).await;
    scene.end_writers();
    let old = scene.claims().await;
    assert_eq!(old.len(), 3);
    let mut asked = restore("etcd");
    asked.spec.replace_running = true;
    scene.stage.create(&asked).await;
    scene.until_restore("done", |status| status.succeeded).await;
    let now = scene.claims().await;
    assert!(old.iter().all(|one| now.contains(one)), "{now:?}");
    scene.serves("etcd", 3, &values).await;
    scene
        .until_restore("cleaned", |status| status.cleaned)
        .await;
    scene.stage.rest().await;
    let left = scene.claims().await;
    assert!(
        left.len() == 3 && !old.iter().any(|one| left.contains(one)),
        "{left:?}"
    );
}

pub(crate) async fn running_cluster_is_replaced_only_when_asked(scene: Scene) {
    let values = scene.backed_up(&etcd("etcd", 1), 1).await;
    let before = scene.status("etcd").await;
    scene.stage.create(&restore("etcd")).await;
    let refused = |status: &RestoreStatus| status.reason.contains("set spec.replaceRunning");
    scene.until_restore("refused", refused).await;
    scene.progress().await;
    assert_eq!(scene.status("etcd").await.cluster_id, before.cluster_id);
    scene.end_writers();
    let allow = json!({ "spec": { "replaceRunning": true } });
    scene.stage.patch::<EtcdRestore>("r", allow).await;
    let after = scene.serves("etcd", 1, &values).await;
    assert_ne!(before.cluster_id, after.cluster_id);
    scene.stage.rest().await;
}

pub(crate) async fn damaged_backup_leaves_the_cluster_untouched(scene: Scene) {
    scene.backed_up(&etcd("etcd", 1), 1).await;
    let before = scene.status("etcd").await;
    scene.vault.damage("etcd.backup");
    let mut asked = restore("etcd");
    asked.spec.replace_running = true;
    scene.stage.create(&asked).await;
    let damaged = |status: &RestoreStatus| status.reason.contains("the backup is damaged");
    scene.until_restore("refused", damaged).await;
    scene.progress().await;
    let after = scene.status("etcd").await;
    assert_eq!(
        (before.cluster_id, 0),
        (after.cluster_id, after.incarnation)
    );
    // It is tried again for as long as it is asked for.
    scene.stage.delete::<EtcdRestore>("r").await;
    scene.stage.rest().await;
    scene.nothing_is_lost();
}

pub(crate) async fn cluster_that_does_not_exist_is_made(scene: Scene) {
    let values = scene.backed_up(&etcd("etcd", 1), 1).await;
    scene.end_writers();
    let mut asked = restore("other");
    scene.stage.create(&asked).await;
    let refused = |status: &RestoreStatus| status.reason.contains("set spec.clusterSpec");
    scene.until_restore("refused", refused).await;
    scene.stage.delete::<EtcdRestore>("r").await;
    asked.spec.cluster_spec = Some(etcd("other", 3).spec);
    scene.stage.create(&asked).await;
    scene.serves("other", 3, &values).await;
    scene.stage.rest().await;
}

pub(crate) async fn seed_that_ends_is_made_again(scene: Scene) {
    let values = scene.backed_up(&etcd("etcd", 3), 3).await;
    scene.lose(3).await;
    scene.stage.create(&restore("etcd")).await;
    let seeded = |status: &EtcdClusterStatus| status.seed.is_some() && status.cluster_id.is_some();
    let status = scene.until("etcd", "seeded", seeded).await;
    let seed = status.seed.expect("a seed");
    scene.stage.delete::<Pod>(&seed).await;
    scene.serves("etcd", 3, &values).await;
    scene.stage.rest().await;
}

impl Scene {
    async fn claims(&self) -> Vec<String> {
        let claims = self.stage.list::<PersistentVolumeClaim>().await;
        claims.iter().map(ResourceExt::name_any).collect()
    }
}
