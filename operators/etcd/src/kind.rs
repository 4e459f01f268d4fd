//! The kind: what a user asks for, what there is, and what the operator has set out to do.
//!
//! What the seed's custom resources say applies as it is. Parts of the API that this operator does
//! not offer yet (TLS, backup, restore) are in the schema, so that asking for them is answered by
//! a condition rather than by silence.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Affinity, EnvVar, PodSecurityContext, ResourceRequirements, Toleration},
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{Condition, Time},
    },
};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The image's name unless told.
pub(crate) const REPOSITORY: &str = "quay.io/coreos/etcd";

/// The version that runs unless told: what the distribution has.
pub(crate) const VERSION: &str = "3.4.23";

/// After how many seconds without an answer a member is given up, unless told.
pub(crate) const GRACE: i64 = 300;

/// What a user asks for.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "etcd.database.coreos.com",
    version = "v1beta2",
    kind = "EtcdCluster",
    plural = "etcdclusters",
    singular = "etcdcluster",
    shortname = "etcd",
    namespaced,
    status = "EtcdClusterStatus",
    printcolumn = r#"{"name":"Size","type":"integer","jsonPath":".spec.size"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.readyMembers"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.currentVersion"}"#,
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.storage) == has(oldSelf.storage) && (!has(self.storage) || self.storage == oldSelf.storage)",
        "message": "storage cannot be changed: the members' volumes are made with it; make a new cluster",
    },
]))]
pub struct EtcdClusterSpec {
    /// How many members there are: 1 to 7. An odd number; one more adds no safety.
    #[schemars(range(min = 1, max = 7))]
    pub size: i32,
    /// The version of etcd, such as 3.4.23.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub version: String,
    /// The image without its tag; quay.io/coreos/etcd unless told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub repository: String,
    /// The operator leaves the cluster alone while this is true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// How the members' pods are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodPolicy>,
    /// A volume for each member. Without it the data of a member goes with its pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// After how many seconds without an answer a member is removed and replaced; 300 unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub replace_after_seconds: Option<i64>,
    /// Encrypted connections; not offered yet.
    #[serde(default, rename = "TLS", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub tls: Option<Value>,
    /// Scheduled backups; not offered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub backup: Option<Value>,
    /// Starting from a backup; not offered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub restore: Option<Value>,
}

/// How the members' pods are made. A change concerns pods made after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodPolicy {
    /// More labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// What a member may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub resources: Option<ResourceRequirements>,
    /// Which nodes may run a member.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Where members run, relative to nodes and pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub affinity: Option<Affinity>,
    /// Which taints are tolerated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list_of_anything")]
    pub tolerations: Vec<Toleration>,
    /// Variables for etcd, such as `ETCD_AUTO_COMPACTION_RETENTION`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list_of_anything")]
    pub etcd_env: Vec<EnvVar>,
    /// As whom it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub security_context: Option<PodSecurityContext>,
}

/// A volume for each member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// How large it is.
    pub size: Quantity,
    /// Its storage class; the cluster's default unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EtcdClusterStatus {
    /// Creating, Running, Paused, Recovering or Failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// How many members there are.
    pub size: i32,
    /// How many of them are ready.
    pub ready_members: i32,
    /// Which they are.
    pub members: MembersStatus,
    /// The name of the leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// The version the members run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub current_version: String,
    /// The Service that clients use.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_name: String,
    /// Its port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_port: Option<i32>,
    /// The id etcd has given the cluster. From then on no member is ever started as a new cluster.
    #[serde(rename = "clusterID", skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The members as etcd told of them last, in the order in which they came.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roster: Vec<MemberRecord>,
    /// How many members the cluster has ever had: no name is used twice.
    pub serial: i64,
    /// How often the cluster has begun again from a backup.
    #[serde(skip_serializing_if = "is_zero")]
    pub incarnation: i64,
    /// What distinguishes its members from those of other incarnations; the uid of this object
    /// before the first restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The member that was made from the backup, until others have taken its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
    /// How long etcd's log was at least when this was written: a leader with less is another
    /// cluster's.
    pub raft_index: i64,
    /// What the operator is about to do: written before it is done, so that whoever comes after a
    /// crash goes on with the same member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
    /// The generation this tells of, kept by the framework.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Available, Progressing, Degraded, Recovering and Scaling.
    pub conditions: Vec<Condition>,
}

/// The names of the members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MembersStatus {
    /// Those that are ready, sorted.
    pub ready: Vec<String>,
    /// Those that are not, sorted.
    pub unready: Vec<String>,
}

/// A member as it was last known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberRecord {
    /// Its name, which is its pod's.
    pub name: String,
    /// Its id, in hexadecimal as `etcdctl` prints it.
    pub id: String,
    /// Whether it has no vote yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub learner: bool,
}

/// What the operator is about to do with a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// What.
    pub action: Action,
    /// The member's name.
    pub member: String,
    /// Its id, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Why, for people.
    #[serde(default)]
    pub reason: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
}

/// What is done with a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Action {
    /// It is the first of a new cluster.
    Bootstrap,
    /// It joins.
    Add,
    /// It leaves.
    Remove,
}

impl EtcdClusterSpec {
    /// The version asked for.
    pub fn version(&self) -> &str {
        if self.version.is_empty() {
            VERSION
        } else {
            &self.version
        }
    }

    /// The image of a version.
    pub fn image(&self, version: &str) -> String {
        let repository = match self.repository.as_str() {
            "" => REPOSITORY,
            repository => repository,
        };
        let version = version.strip_prefix('v').unwrap_or(version);
        format!("{repository}:v{version}")
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn list_of_anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    })
}
