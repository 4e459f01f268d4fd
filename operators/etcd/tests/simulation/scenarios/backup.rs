//! Backups of a cluster to which a client writes.

use etcd_operator::EtcdCluster;
use etcd_operator::backup::{
    BackupPolicy, BackupStatus, ClusterReference, EtcdBackup, EtcdBackupSpec,
};
use etcd_operator::restore::EtcdRestore;
use etcd_operator::store::S3Source;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::play::{LOOK, PATIENCE, Scene, etcd};
use crate::database::puts_of;
use crate::vault::{BUCKET, SECRET_KEY};

/// The fields of backups that depend on when they were taken, and how often that went wrong.
const TIMES: [&str; 7] = [
    "lastSuccessDate",
    "etcdRevision",
    "nextRun",
    "last",
    "kept",
    "message",
    "reason",
];

const CONFIG: &str = "[default]\nregion = us-east-1\n";

pub(crate) fn secret(key: &str) -> Secret {
    let credentials = format!("[default]\naws_access_key_id = id\naws_secret_access_key = {key}\n");
    let files = [("credentials", credentials.as_str()), ("config", CONFIG)];
    let data = files.map(|(name, text)| (name.to_owned(), ByteString(text.as_bytes().to_vec())));
    let mut secret = Secret {
        data: Some(data.into()),
        ..Secret::default()
    };
    secret.metadata.name = Some("aws".to_owned());
    secret
}

pub(super) fn source() -> S3Source {
    S3Source {
        path: format!("{BUCKET}/etcd.backup"),
        aws_secret: "aws".to_owned(),
        ..S3Source::default()
    }
}

pub(crate) fn backup(name: &str) -> EtcdBackup {
    let spec = EtcdBackupSpec {
        etcd_endpoints: vec!["http://etcd-client:2379".to_owned()],
        s3: Some(source()),
        ..EtcdBackupSpec::default()
    };
    EtcdBackup::new(name, spec)
}

impl Scene {
    /// Begins a scenario of backups: with the secret, if a key is given.
    pub(super) async fn with_secret(&self, key: Option<&str>) {
        self.cluster.do_not_compare(&TIMES);
        if let Some(key) = key {
            self.stage.create(&secret(key)).await;
        }
    }

    /// Waits until a backup's status is as expected.
    pub(super) async fn until_backup(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&BackupStatus) -> bool,
    ) -> BackupStatus {
        let limit = Instant::now() + PATIENCE;
        loop {
            let found = self.stage.find::<EtcdBackup>(name).await;
            let status = found.and_then(|found| found.status).unwrap_or_default();
            if is(&status) {
                return status;
            }
            assert!(
                Instant::now() < limit,
                "{name} is not {what} in time: {status:#?}"
            );
            sleep(LOOK).await;
        }
    }

    /// Every write that was acknowledged before the backup was asked for is in it, in order.
    fn has(&self, key: &str, acknowledged: usize) {
        let object = self.vault.object(key).expect("an object");
        let puts = puts_of(&object).expect("a snapshot that is whole");
        assert!(
            puts.len() >= acknowledged,
            "{} of {acknowledged} writes",
            puts.len()
        );
        let manifest = self.vault.manifests().remove(key).expect("a manifest");
        assert_eq!(manifest.revision, i64::try_from(puts.len()).unwrap() + 1);
        assert_eq!(manifest.bytes, object.len() as u64);
        assert_eq!(manifest.etcd_version, "3.4.0");
    }

    /// Nothing in the cluster repeats what is in the secret.
    pub(super) async fn keeps_its_secret(&self) {
        self.vault.is_sound();
        let backups = self.stage.list::<EtcdBackup>().await;
        let clusters = self.stage.list::<EtcdCluster>().await;
        let restores = self.stage.list::<EtcdRestore>().await;
        let events = self.stage.list::<Event>().await;
        let text = json!([backups, restores, clusters, events]).to_string();
        assert!(!text.contains(SECRET_KEY), "{text}");
    }
}

pub(crate) async fn backup_is_taken_once(scene: Scene) {
    scene.with_secret(Some(SECRET_KEY)).await;
    scene.create(&etcd("etcd", 1)).await;
    scene.ready("etcd", 1).await;
    scene.progress().await;
    let before = scene.acknowledged();
    scene.stage.create(&backup("b")).await;
    let taken = |status: &BackupStatus| status.succeeded && status.phase == "Succeeded";
    scene.until_backup("b", "taken", taken).await;
    scene.stage.rest().await;
    let status = scene.until_backup("b", "still taken", taken).await;
    assert!(
        status.run.is_none() && status.reason.is_empty(),
        "{status:#?}"
    );
    assert_eq!(
        scene.vault.keys(),
        ["etcd.backup", "etcd.backup.manifest.json"]
    );
    scene.has("etcd.backup", before);
    scene.keeps_its_secret().await;
    scene.nothing_is_lost();
}

pub(crate) async fn two_of_many_backups_are_kept(scene: Scene) {
    scene.with_secret(Some(SECRET_KEY)).await;
    // Neighbours, and what others put under the same path.
    let foreign = [
        "etcd.backup2_v1_2026-01-01-00:00:00",
        "etcd.backup_v9_notes",
    ];
    for key in foreign {
        scene.vault.put(key, "theirs");
    }
    scene.create(&etcd("etcd", 3)).await;
    scene.ready("etcd", 3).await;
    let mut periodic = backup("b");
    periodic.spec.etcd_endpoints.clear();
    periodic.spec.etcd_cluster = Some(ClusterReference {
        name: "etcd".to_owned(),
    });
    periodic.spec.backup_policy = Some(BackupPolicy {
        backup_interval_in_second: Some(60),
        max_backups: Some(2),
        ..BackupPolicy::default()
    });
    scene.stage.create(&periodic).await;
    let fourth = |status: &BackupStatus| {
        let sequence = status.last.as_ref().map_or(0, |last| last.sequence);
        sequence >= 4 && status.phase == "Waiting"
    };
    scene.until_backup("b", "taken four times", fourth).await;
    let suspend = json!({ "spec": { "backupPolicy": { "suspend": true } } });
    scene.stage.patch::<EtcdBackup>("b", suspend).await;
    let suspended = |status: &BackupStatus| status.phase == "Suspended";
    scene.until_backup("b", "suspended", suspended).await;
    scene.stage.rest().await;
    let kept = scene.vault.manifests();
    let mut sequences: Vec<i64> = kept.values().map(|one| one.sequence).collect();
    sequences.sort_unstable();
    assert_eq!(sequences.len(), 2, "{sequences:?}");
    assert_eq!(sequences[1], sequences[0] + 1, "{sequences:?}");
    for key in foreign {
        assert!(scene.vault.object(key).is_some(), "{key} is gone");
    }
    // Nothing else is left of those that went.
    assert_eq!(
        scene.vault.keys().len(),
        4 + foreign.len(),
        "{:?}",
        scene.vault.keys()
    );
    for key in kept.keys() {
        scene.has(key, 0);
    }
    scene.keeps_its_secret().await;
    scene.nothing_is_lost();
}

pub(crate) async fn wrong_secret_then_the_right_one(scene: Scene) {
    scene.with_secret(None).await;
    scene.create(&etcd("etcd", 1)).await;
    scene.ready("etcd", 1).await;
    scene.stage.create(&backup("b")).await;
    let missing = |status: &BackupStatus| status.reason.contains("there is no secret aws");
    scene.until_backup("b", "without a secret", missing).await;
    scene.stage.create(&secret("another-hush")).await;
    let denied = |status: &BackupStatus| status.reason.contains("denies access");
    let status = scene.until_backup("b", "denied", denied).await;
    assert!(
        !status.succeeded && status.reason.contains("secret aws"),
        "{}",
        status.reason
    );
    assert!(!status.reason.contains("another-hush"), "{}", status.reason);
    scene.stage.delete::<Secret>("aws").await;
    scene.stage.create(&secret(SECRET_KEY)).await;
    scene
        .until_backup("b", "taken", |status| status.succeeded)
        .await;
    scene.stage.rest().await;
    scene.has("etcd.backup", 0);
    scene.keeps_its_secret().await;
    scene.nothing_is_lost();
}

pub(crate) async fn store_that_breaks_down_is_asked_again(scene: Scene) {
    scene.with_secret(Some(SECRET_KEY)).await;
    scene.create(&etcd("etcd", 1)).await;
    scene.ready("etcd", 1).await;
    scene.vault.break_down(true);
    scene.stage.create(&backup("b")).await;
    let failed = |status: &BackupStatus| !status.succeeded && !status.reason.is_empty();
    scene.until_backup("b", "failing", failed).await;
    scene.vault.break_down(false);
    scene
        .until_backup("b", "taken", |status| status.succeeded)
        .await;
    scene.stage.rest().await;
    scene.has("etcd.backup", 0);
    scene.keeps_its_secret().await;
    scene.nothing_is_lost();
}

pub(crate) async fn flipped_bit_is_found_and_the_backup_taken_again(scene: Scene) {
    scene.with_secret(Some(SECRET_KEY)).await;
    scene.create(&etcd("etcd", 1)).await;
    scene.ready("etcd", 1).await;
    scene.vault.flip_next();
    scene.stage.create(&backup("b")).await;
    scene
        .until_backup("b", "taken", |status| status.succeeded)
        .await;
    scene.stage.rest().await;
    scene.has("etcd.backup", 0);
    scene.keeps_its_secret().await;
    scene.nothing_is_lost();
}

pub(crate) async fn endpoint_of_another_namespace_is_refused(scene: Scene) {
    scene.with_secret(Some(SECRET_KEY)).await;
    scene.create(&etcd("etcd", 1)).await;
    scene.ready("etcd", 1).await;
    let mut foreign = backup("b");
    foreign.spec.etcd_endpoints = vec!["http://etcd-client.kube-system.svc:2379".to_owned()];
    scene.stage.create(&foreign).await;
    let refused = |status: &BackupStatus| status.reason.contains("of namespace default");
    scene.until_backup("b", "refused", refused).await;
    assert_eq!(scene.vault.keys(), Vec::<String>::new());
    scene.stage.delete::<EtcdBackup>(&foreign.name_any()).await;
    scene.stage.rest().await;
    scene.nothing_is_lost();
}
