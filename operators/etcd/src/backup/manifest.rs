//! [`Manifest`]: what is known about a backup beside its data.
//!
//! It is written last, and makes the backup count.

use serde::{Deserialize, Serialize};

/// What a manifest's key has after that of its data.
const SUFFIX: &str = ".manifest.json";
/// The format that this operator writes.
const FORMAT: u32 = 1;

/// What is known about a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The format of this text.
    pub format: u32,
    /// The SHA-256 of the data, in hexadecimal.
    pub sha256: String,
    /// The length of the data.
    pub bytes: u64,
    /// The newest revision in it.
    pub revision: i64,
    /// Up to which revision it is compacted.
    pub compact_revision: i64,
    /// The version of the cluster.
    pub etcd_version: String,
    /// The id of the cluster.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// Whether clients have to say who they are.
    pub auth_enabled: bool,
    /// Its place among the backups of its path.
    pub sequence: i64,
    /// The uid of the `EtcdBackup` that it was taken for.
    #[serde(rename = "backupUID")]
    pub backup_uid: String,
}

impl Manifest {
    /// The text that is stored.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The manifest of that text; none if it is of a format that is not known here.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let manifest: Self = serde_json::from_slice(text).ok()?;
        (manifest.format == FORMAT).then_some(manifest)
    }

    pub(crate) const FORMAT: u32 = FORMAT;
}

/// The key of the manifest of a backup.
pub(crate) fn key_of(data: &str) -> String {
    format!("{data}{SUFFIX}")
}

/// The key of the data whose manifest has this key, if it is a manifest.
pub(crate) fn data_of(key: &str) -> Option<&str> {
    key.strip_suffix(SUFFIX)
}
