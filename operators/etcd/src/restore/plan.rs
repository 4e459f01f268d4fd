//! [`Plan`]: what the restore controller asks the cluster controller to do.

use kube::ResourceExt;
use serde::{Deserialize, Serialize};

use crate::{kind::EtcdCluster, store::Place};

/// The annotation of an `EtcdCluster` that carries its plan.
pub const PLAN: &str = "etcd.database.coreos.com/restore";

/// A new incarnation of a cluster, from a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The name of the `EtcdRestore`.
    pub restore: String,
    /// Greater than that of the cluster: once the cluster has it, the plan is carried out.
    pub incarnation: i64,
    /// The token of the new incarnation, which no other has.
    pub token: String,
    /// The backup.
    pub source: Source,
}

/// Where the backup is, and what has been seen of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The store.
    pub place: Place,
    /// The key.
    pub key: String,
    /// The name of the Secret.
    pub secret: String,
    /// The SHA-256 of all of it.
    pub sha256: String,
}

impl Plan {
    /// The plan of a cluster, also one that was carried out; the error is for a person.
    pub(crate) fn of(cluster: &EtcdCluster) -> Result<Option<Self>, String> {
        let Some(text) = cluster.annotations().get(PLAN) else {
            return Ok(None);
        };
        let plan = serde_json::from_str(text);
        plan.map(Some).map_err(|error| {
            format!("annotation {PLAN} is not a plan of a restore: {error}; remove it")
        })
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The name of the seed of this incarnation.
    pub fn seed(&self, cluster: &str) -> String {
        format!("{cluster}-seed-{}", self.incarnation)
    }
}
