//! What is known about a cluster when the next step is decided.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, PersistentVolumeClaim, Pod};
use kube::ResourceExt;

use crate::{
    etcd::{MemberStatus, Membership},
    kind::{EtcdClusterSpec, EtcdClusterStatus},
    member::Names,
    objects::INITIAL_CLUSTER,
    restore::Plan,
};

/// How often a container must have been started again before its member counts as broken.
pub const CRASHES: i32 = 3;

/// What etcd says when it finds an empty data folder, and its own name is not among the members
/// that it could begin or join with.
const NO_DATA: &str = "couldn't find local name";

/// Everything the decision depends on.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// The cluster's names.
    pub names: Names<'a>,
    /// What is asked for.
    pub spec: &'a EtcdClusterSpec,
    /// From which backup the cluster begins, or has begun.
    pub plan: Option<Plan>,
    /// What was recorded before.
    pub recorded: &'a EtcdClusterStatus,
    /// The members as a majority tells of them; none when no majority answers.
    pub membership: Option<Membership>,
    /// Why there is no majority's answer.
    pub silence: String,
    /// What each member says of itself, by the name of its pod.
    pub answers: BTreeMap<String, MemberStatus>,
    /// The pods that carry the cluster's label, by name.
    pub pods: BTreeMap<String, PodView>,
    /// The claims that carry the cluster's label, by name.
    pub claims: BTreeMap<String, ClaimView>,
    /// The time.
    pub now: Timestamp,
}

/// A pod, as far as the decision looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that hold or not, each by itself"
)]
pub struct PodView {
    /// Whether this cluster controls it.
    pub ours: bool,
    /// Whether it is ready.
    pub ready: bool,
    /// Since when it is ready or not, or there is.
    pub since: Timestamp,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// Whether it has ended, and will not start again.
    pub ended: bool,
    /// The image it was made with.
    pub image: String,
    /// Its address.
    pub address: Option<String>,
    /// How often etcd was started again.
    pub restarts: i32,
    /// What keeps it from running, for people.
    pub trouble: Option<String>,
    /// What becomes of etcd when its container is started on an empty data folder.
    pub on_empty: OnEmpty,
    /// Whether etcd has refused to start, because its data folder was empty.
    pub without_data: bool,
}

/// What becomes of etcd when its container is started on an empty data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnEmpty {
    /// It begins a cluster, or joins one: as it has to the first time.
    Starts,
    /// It ends at once, as soon as the node has seen the pod's last change.
    RefusedSoon,
    /// It ends at once.
    Refused,
}

/// A claim, as far as the decision looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimView {
    /// Whether this cluster controls it.
    pub ours: bool,
    /// Whether it is being deleted.
    pub terminating: bool,
}

impl View<'_> {
    /// Whether a member takes part: it answers and follows a leader.
    pub fn healthy(&self, member: &str) -> bool {
        let answers = self.answers.get(member);
        let leads = answers.is_some_and(|status| status.leader.is_some());
        leads && self.pods.get(member).is_some_and(|pod| !pod.terminating)
    }

    /// Whether the data folder of a member was found empty when etcd was started the last time.
    pub fn lost_data(&self, member: &str) -> bool {
        let pod = self.pods.get(member);
        pod.is_some_and(|pod| pod.ours && pod.without_data) && !self.answers.contains_key(member)
    }

    /// Whether a member was made from a backup, to be replaced by others.
    pub fn is_seed(&self, member: &str) -> bool {
        self.recorded.seed.as_deref() == Some(member)
    }

    /// The claim that holds a member's data, if it is there to stay.
    pub fn data(&self, member: &str) -> Option<&ClaimView> {
        let claim = self.claims.get(member)?;
        (claim.ours && !claim.terminating).then_some(claim)
    }

    /// The version that pods are made with.
    pub fn version(&self) -> &str {
        match self.recorded.current_version.as_str() {
            "" => self.spec.version(),
            version => version,
        }
    }

    /// The image that pods are made with.
    pub fn image(&self) -> String {
        self.spec.image(self.version())
    }

    /// The name for the next new member: one that nothing has.
    pub fn next_member(&self) -> (i64, String) {
        let mut serial = self.recorded.serial + 1;
        loop {
            let name = self.names.member(serial);
            let listed = self.membership.iter().flat_map(|told| &told.members);
            let known = listed
                .filter_map(|member| self.names.of(member))
                .any(|member| member == name);
            if !known && !self.pods.contains_key(&name) && !self.claims.contains_key(&name) {
                return (serial, name);
            }
            serial += 1;
        }
    }
}

impl PodView {
    /// A pod as it is; `uid` is that of the cluster's object.
    pub fn of(pod: &Pod, uid: &str) -> Self {
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let ready = conditions
            .into_iter()
            .flatten()
            .find(|one| one.type_ == "Ready");
        let since = ready.and_then(|ready| ready.last_transition_time.as_ref());
        let since = since.or(pod.metadata.creation_timestamp.as_ref());
        let phase = status.and_then(|status| status.phase.as_deref());
        let containers = status.and_then(|status| status.container_statuses.as_ref());
        let etcd = containers.and_then(|containers| containers.first());
        Self {
            ours: controlled_by(pod.owner_references(), uid),
            ready: ready.is_some_and(|ready| ready.status == "True"),
            since: since.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            terminating: pod.metadata.deletion_timestamp.is_some(),
            ended: matches!(phase, Some("Failed" | "Succeeded")),
            image: image_of(pod),
            address: status.and_then(|status| status.pod_ip.clone()),
            restarts: etcd.map_or(0, |etcd| etcd.restart_count),
            trouble: trouble_of(pod, etcd),
            on_empty: OnEmpty::of(pod),
            without_data: etcd.is_some_and(refused_without_data),
        }
    }

    /// Whether etcd does not stay up.
    pub fn crashes(&self) -> bool {
        !self.ready && self.restarts >= CRASHES
    }
}

impl OnEmpty {
    fn of(pod: &Pod) -> Self {
        if pod.annotations().contains_key(INITIAL_CLUSTER) {
            return Self::Starts;
        }
        // Nodes before Kubernetes 1.33 do not report which generation of a pod they have seen.
        let status = pod.status.as_ref();
        let seen = status.and_then(|status| status.observed_generation);
        match (seen, pod.metadata.generation) {
            (Some(seen), Some(newest)) if seen < newest => Self::RefusedSoon,
            _ => Self::Refused,
        }
    }
}

impl ClaimView {
    /// A claim as it is; `uid` is that of the cluster's object.
    pub fn of(claim: &PersistentVolumeClaim, uid: &str) -> Self {
        Self {
            ours: controlled_by(claim.owner_references(), uid),
            terminating: claim.metadata.deletion_timestamp.is_some(),
        }
    }
}

fn controlled_by(
    owners: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference],
    uid: &str,
) -> bool {
    owners
        .iter()
        .any(|owner| owner.controller == Some(true) && owner.uid == uid)
}

/// Whether a container ended the last time because its data folder was empty.
fn refused_without_data(etcd: &ContainerStatus) -> bool {
    let states = [&etcd.state, &etcd.last_state].into_iter().flatten();
    let mut ends = states.filter_map(|state| state.terminated.as_ref());
    let message = ends.next().and_then(|end| end.message.as_deref());
    message.is_some_and(|message| message.contains(NO_DATA))
}

fn image_of(pod: &Pod) -> String {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut images = containers.filter_map(|container| container.image.clone());
    images.next().unwrap_or_default()
}

/// What keeps a pod from running: that it has no place, no image, or ends at once.
fn trouble_of(pod: &Pod, etcd: Option<&ContainerStatus>) -> Option<String> {
    let said = |reason: Option<&String>, message: Option<&String>| {
        let words = [reason, message].into_iter().flatten();
        let words: Vec<&str> = words.map(String::as_str).collect();
        (!words.is_empty()).then(|| words.join(": "))
    };
    let state = etcd.and_then(|etcd| etcd.state.as_ref());
    if let Some(waiting) = state.and_then(|state| state.waiting.as_ref()) {
        let starting = matches!(
            waiting.reason.as_deref(),
            Some("ContainerCreating" | "PodInitializing")
        );
        if !starting {
            let last = etcd.and_then(|etcd| etcd.last_state.as_ref()?.terminated.as_ref());
            let told = said(waiting.reason.as_ref(), waiting.message.as_ref());
            return match last {
                Some(last) => Some(format!(
                    "{}; etcd ended last with code {}",
                    told.unwrap_or_default(),
                    last.exit_code
                )),
                None => told,
            };
        }
    }
    if let Some(ended) = state.and_then(|state| state.terminated.as_ref()) {
        return Some(format!("etcd ended with code {}", ended.exit_code));
    }
    let status = pod.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let placed = conditions.find(|one| one.type_ == "PodScheduled" && one.status == "False");
    if let Some(placed) = placed {
        return said(placed.reason.as_ref(), placed.message.as_ref());
    }
    said(status.reason.as_ref(), status.message.as_ref())
}
