//! The kind `EtcdBackup`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::store::{S3Source, StorageType};

/// A backup of an etcd cluster, taken once, or again and again.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "etcd.database.coreos.com",
    version = "v1beta2",
    kind = "EtcdBackup",
    plural = "etcdbackups",
    singular = "etcdbackup",
    namespaced,
    status = "BackupStatus",
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Succeeded","type":"boolean","jsonPath":".status.succeeded"}"#,
    printcolumn = r#"{"name":"Revision","type":"integer","jsonPath":".status.etcdRevision"}"#,
    printcolumn = r#"{"name":"Last success","type":"date","jsonPath":".status.lastSuccessDate"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "(has(self.etcdEndpoints) && size(self.etcdEndpoints) > 0) != has(self.etcdCluster)",
        "message": "set either etcdEndpoints or etcdCluster",
    },
    {
        "rule": "self.storageType != 'S3' || has(self.s3)",
        "message": "storageType S3 needs the field s3",
    },
]))]
pub struct EtcdBackupSpec {
    /// The URLs of the cluster's members or of a Service of them, in the namespace of the backup.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 1024)))]
    pub etcd_endpoints: Vec<String>,
    /// The `EtcdCluster`, instead of its URLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_cluster: Option<ClusterReference>,
    /// The kind of store.
    pub storage_type: StorageType,
    /// Where backups are kept in a store of the type S3. A backup that is taken once has this
    /// path; of those taken again and again it is the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Source>,
    /// When backups are taken, and how many are kept. Without an interval, one is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_policy: Option<BackupPolicy>,
}

/// The name of an `EtcdCluster` in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterReference {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// When backups are taken, and how many are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupPolicy {
    /// How long one attempt may take, in seconds; an hour by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub timeout_in_second: Option<i64>,
    /// A backup is taken again after so many seconds; 0 is once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub backup_interval_in_second: Option<i64>,
    /// How many of the backups taken by this object are kept; 0 is all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000))]
    pub max_backups: Option<i64>,
    /// No backup is begun while this is true.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// What has become of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupStatus {
    /// Whether the last attempt made a backup.
    pub succeeded: bool,
    /// Why it did not.
    #[serde(rename = "Reason", skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The version of the cluster in the last backup.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub etcd_version: String,
    /// The revision of the last backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd_revision: Option<i64>,
    /// When the last backup was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success_date: Option<Time>,
    /// Planned, Uploading, Checked, Committed, Waiting, Suspended or Succeeded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// The backup that is being taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<BackupRun>,
    /// The last backup that was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LastBackup>,
    /// The keys of backups that are being deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pruning: Vec<String>,
    /// How many backups of this object the store has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<i64>,
    /// When the next backup is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_run: Option<Time>,
    /// The generation this was written for, kept by the framework.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Those of the framework: Available, Progressing and Degraded.
    pub conditions: Vec<Condition>,
}

/// A backup that is being taken: recorded before anything is written to the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupRun {
    /// Greater than that of every backup that was there when it was planned.
    pub sequence: i64,
    /// The path in the store: `<bucket>/<key>`.
    pub path: String,
    /// The upload, while there is one.
    #[serde(default, rename = "uploadID", skip_serializing_if = "Option::is_none")]
    pub upload_id: Option<String>,
    /// What the store calls the parts of the upload, once it has all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// When it was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// The SHA-256 of what was uploaded, once it was checked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// How long it is.
    #[serde(default)]
    pub bytes: i64,
    /// The id of the cluster it is of.
    #[serde(
        default,
        rename = "clusterID",
        skip_serializing_if = "String::is_empty"
    )]
    pub cluster_id: String,
}

/// A backup that was committed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastBackup {
    /// Its path in the store: `<bucket>/<key>`.
    pub path: String,
    /// Its place among the backups of this path.
    pub sequence: i64,
    /// How long it is.
    pub bytes: i64,
    /// Its SHA-256.
    pub sha256: String,
    /// The newest revision in it.
    pub revision: i64,
}

impl EtcdBackupSpec {
    /// The seconds between two backups; none if one is taken once.
    pub(crate) fn interval(&self) -> Option<i64> {
        let policy = self.backup_policy.as_ref()?;
        policy.backup_interval_in_second.filter(|every| *every > 0)
    }

    pub(crate) fn suspended(&self) -> bool {
        self.backup_policy
            .as_ref()
            .is_some_and(|policy| policy.suspend)
    }

    /// How many backups are kept; none if all are.
    pub(crate) fn max_backups(&self) -> Option<usize> {
        let most = self.backup_policy.as_ref()?.max_backups?;
        usize::try_from(most).ok().filter(|most| *most > 0)
    }
}
