//! The kind `EtcdRestore`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    backup::ClusterReference,
    kind::EtcdClusterSpec,
    store::{S3Source, StorageType},
};

/// A backup that is restored into an etcd cluster.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "etcd.database.coreos.com",
    version = "v1beta2",
    kind = "EtcdRestore",
    plural = "etcdrestores",
    singular = "etcdrestore",
    namespaced,
    status = "RestoreStatus",
    printcolumn = r#"{"name":"Cluster","type":"string","jsonPath":".spec.etcdCluster.name"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Succeeded","type":"boolean","jsonPath":".status.succeeded"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.backupStorageType != 'S3' || has(self.s3)",
        "message": "backupStorageType S3 needs the field s3",
    },
    {
        "rule": "self.etcdCluster == oldSelf.etcdCluster",
        "message": "etcdCluster cannot be changed: make another EtcdRestore",
    },
]))]
pub struct EtcdRestoreSpec {
    /// The kind of store.
    pub backup_storage_type: StorageType,
    /// Where the backup is in a store of the type S3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Source>,
    /// The `EtcdCluster` that gets the data.
    pub etcd_cluster: ClusterReference,
    /// The `EtcdCluster` that is made, if there is none of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_spec: Option<EtcdClusterSpec>,
    /// Whether a cluster that serves clients is replaced. What was written to it after the backup
    /// is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace_running: bool,
    /// After how many seconds the volumes of the members from before are deleted; a day by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub keep_old_data_seconds: Option<i64>,
}

/// What has become of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RestoreStatus {
    /// Whether the cluster serves clients the data of the backup.
    pub succeeded: bool,
    /// Why it does not yet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Pending, Verified, Fenced, Seeding, Seeded, Serving or Succeeded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// The backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotFacts>,
    /// The incarnation of the cluster that has its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<i64>,
    /// The token of that incarnation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// How often it was begun.
    pub attempts: i64,
    /// When it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_date: Option<Time>,
    /// Whether the volumes from before are gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cleaned: bool,
    /// The generation this was written for, kept by the framework.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Those of the framework: Available, Progressing and Degraded.
    pub conditions: Vec<Condition>,
}

/// A backup that was read and checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotFacts {
    /// Its path in the store: `<bucket>/<key>`.
    pub path: String,
    /// How long it is.
    pub bytes: i64,
    /// Its SHA-256.
    pub sha256: String,
    /// The newest revision in it.
    pub revision: i64,
    /// The version of the cluster it is of.
    pub etcd_version: String,
    /// Whether it has a manifest that says the same. Backups of other programs have none.
    pub has_manifest: bool,
}
