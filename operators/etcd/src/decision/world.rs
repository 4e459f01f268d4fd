//! A world to try decisions in: pods, volumes and an etcd of which only membership and quorum matter.
//!
//! Every step that is taken in it is judged: what must never be done panics.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Decision, Start, Step, decide, quorum};
use crate::{
    etcd::{Member, MemberStatus, Membership},
    kind::{EtcdCluster, EtcdClusterSpec, EtcdClusterStatus, Storage},
    member::Names,
    status::status_of,
    view::{ClaimView, OnEmpty, PodView, View},
};

const NAMES: Names<'static> = Names {
    cluster: "c",
    namespace: "n",
    uid: "u",
};

/// What happens to a cluster besides what its operator does.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    /// The operator takes this many steps.
    Steps(u8),
    /// Somebody deletes a pod.
    DeletePod(usize),
    /// A pod is evicted: it ends and stays.
    Evict(usize),
    /// A data folder is spoilt.
    Corrupt(usize),
    /// A data folder is emptied, while its pod stays and starts etcd again.
    Empty(usize),
    /// A node does not see changes of its pod any more, or sees them again.
    Partition(usize),
    /// Somebody deletes a pod and its volume.
    DeleteAll(usize),
    /// A member hangs for longer than it may.
    Hang(usize),
    /// The size is changed.
    Resize(i32),
    /// The next call of etcd is lost before it is made.
    LoseCall,
    /// Somebody removes a member behind the operator's back.
    RemoveByHand(usize),
}

#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that hold or not, each by itself"
)]
struct Pod {
    start: Start,
    peers: Vec<String>,
    terminating: bool,
    ended: bool,
    hangs: bool,
    /// Whether it may start without data, as the API server has it and as its node has seen it.
    open: bool,
    seen_open: bool,
    partitioned: bool,
    /// Whether etcd has ended because its folder was empty.
    refused: bool,
    /// Since it was made.
    since: Timestamp,
    /// The data in its own folder, where it has no volume.
    data: Data,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    None,
    Good,
    Spoilt,
}

pub(super) struct World {
    cluster: EtcdCluster,
    pods: BTreeMap<String, Pod>,
    claims: BTreeMap<String, Data>,
    members: BTreeMap<u64, Member>,
    /// How many clusters have begun.
    pub(super) begun: u32,
    /// The id of the one that began last.
    cluster_id: u64,
    ids: u64,
    /// Who was last told to lead.
    heir: Option<u64>,
    log: u64,
    now: Timestamp,
    lose_call: bool,
}

impl World {
    pub(super) fn new(size: i32, volumes: bool) -> Self {
        let storage = volumes.then(|| Storage {
            size: k8s_openapi::apimachinery::pkg::api::resource::Quantity("1Gi".to_owned()),
            storage_class_name: None,
        });
        let spec = EtcdClusterSpec {
            size,
            storage,
            ..EtcdClusterSpec::default()
        };
        Self {
            cluster: EtcdCluster::new("c", spec),
            pods: BTreeMap::new(),
            claims: BTreeMap::new(),
            members: BTreeMap::new(),
            begun: 0,
            cluster_id: 0,
            ids: 0,
            heir: None,
            log: 5,
            now: Timestamp::UNIX_EPOCH,
            lose_call: false,
        }
    }

    pub(super) fn spec(&mut self) -> &mut EtcdClusterSpec {
        &mut self.cluster.spec
    }

    pub(super) fn status(&self) -> EtcdClusterStatus {
        self.cluster.status.clone().unwrap_or_default()
    }

    pub(super) fn forget_status(&mut self) {
        self.cluster.status = None;
    }

    fn data(&self, name: &str) -> Data {
        match self.claims.get(name) {
            Some(data) => *data,
            None => self.pods.get(name).map_or(Data::None, |pod| pod.data),
        }
    }

    fn set_data(&mut self, name: &str, data: Data) {
        match self.claims.get_mut(name) {
            Some(claim) => *claim = data,
            None => {
                if let Some(pod) = self.pods.get_mut(name) {
                    pod.data = data;
                }
            }
        }
    }

    fn named(member: &Member) -> String {
        NAMES.of(member).expect("a member of ours")
    }

    fn listed(&self, name: &str) -> Option<&Member> {
        self.members
            .values()
            .find(|member| Self::named(member) == name)
    }

    /// Whether a member's process works.
    fn works(&self, name: &str) -> bool {
        let pod = self.pods.get(name);
        pod.is_some_and(|pod| !pod.ended && !pod.hangs) && self.data(name) == Data::Good
    }

    fn voters(&self) -> Vec<String> {
        let voters = self.members.values().filter(|member| !member.learner);
        voters.map(Self::named).collect()
    }

    fn working(&self) -> usize {
        self.voters().iter().filter(|name| self.works(name)).count()
    }

    fn has_quorum(&self) -> bool {
        let voters = self.voters();
        !voters.is_empty() && self.working() >= quorum(voters.len())
    }

    /// Whether the data of a majority is still somewhere.
    pub(super) fn can_come_back(&self) -> bool {
        let voters = self.voters();
        let kept = |name: &&String| {
            let lives = self
                .pods
                .get(*name)
                .is_some_and(|pod| !pod.ended && !pod.terminating && !pod.hangs);
            self.data(name) == Data::Good && (self.claims.contains_key(*name) || lives)
        };
        voters.iter().filter(kept).count() >= quorum(voters.len())
    }

    /// What kubelets and etcd do by themselves until nothing moves.
    pub(super) fn settle(&mut self) {
        self.pods.retain(|_, pod| !pod.terminating);
        let names: Vec<String> = self.pods.keys().cloned().collect();
        for name in names {
            let pod = &self.pods[&name];
            let unbound = self.cluster.spec.storage.is_some() && !self.claims.contains_key(&name);
            if pod.ended || pod.hangs || unbound || self.data(&name) != Data::None {
                continue;
            }
            match (pod.seen_open, pod.start) {
                (true, Start::New) => self.begin(&name),
                (true, _) => self.join(&name),
                (false, _) => self.pods.get_mut(&name).expect("it").refused = true,
            }
        }
        // Last: what was changed before this is seen by nodes only now.
        for pod in self.pods.values_mut().filter(|pod| !pod.partitioned) {
            pod.seen_open = pod.open;
        }
        self.log += 1;
    }

    /// Nothing may depend on a member that its node could start again without its data.
    fn assert_needs_its_data(&self, name: &str) {
        let Some(pod) = self.pods.get(name) else {
            return;
        };
        assert!(
            !pod.seen_open && !pod.open,
            "{name} counts, and its pod could start without its data"
        );
    }

    fn begin(&mut self, name: &str) {
        assert!(
            self.status().cluster_id.is_none(),
            "{name} begins a second cluster"
        );
        self.begun += 1;
        self.cluster_id = NAMES.cluster_id(name);
        self.ids += 1;
        self.members.clear();
        self.members
            .insert(self.ids, member(self.ids, name, name, false));
        self.set_data(name, Data::Good);
    }

    fn join(&mut self, name: &str) {
        let Some(listed) = self.listed(name) else {
            return;
        };
        let mut expected: Vec<String> = self.members.values().map(Self::named).collect();
        expected.sort();
        if !self.has_quorum() || self.pods[name].peers != expected {
            return;
        }
        assert!(
            !listed.has_started() || listed.learner,
            "{name} starts again without its data"
        );
        // The leader remembers how far a learner was, which ends when it has forgotten.
        let data = if listed.has_started() {
            Data::Spoilt
        } else {
            Data::Good
        };
        let id = listed.id;
        self.members.insert(id, member(id, name, name, true));
        self.set_data(name, data);
    }

    /// Who was told to lead, if that one can; else any that can.
    fn leader(&self) -> Option<u64> {
        let can_lead = |member: &&Member| !member.learner && self.works(&Self::named(member));
        let mut able = self.members.values().filter(can_lead).map(|one| one.id);
        let heir = self.heir.filter(|heir| able.clone().any(|id| id == *heir));
        heir.or_else(|| able.next())
    }

    pub(super) fn with_view<R>(&self, use_it: impl FnOnce(&View<'_>) -> R) -> R {
        let status = self.status();
        let leader = self.has_quorum().then(|| self.leader()).flatten();
        let answers = self
            .pods
            .keys()
            .filter(|name| self.works(name))
            .filter_map(|name| {
                let listed = self.listed(name)?;
                let status = MemberStatus {
                    cluster_id: self.cluster_id,
                    member_id: listed.id,
                    leader,
                    revision: 1,
                    raft_term: 2,
                    raft_index: self.log,
                    applied_index: self.log,
                    db_size: 0,
                    version: String::new(),
                    learner: listed.learner,
                    errors: Vec::new(),
                };
                Some((name.clone(), status))
            });
        let pods = self.pods.iter().map(|(name, pod)| {
            let works = self.works(name) && self.listed(name).is_some_and(|one| !one.learner);
            let view = PodView {
                ours: true,
                ready: works && leader.is_some(),
                since: pod.since,
                terminating: pod.terminating,
                ended: pod.ended,
                image: self.cluster.spec.image(self.cluster.spec.version()),
                address: Some(name.clone()),
                restarts: if self.data(name) == Data::Spoilt {
                    5
                } else {
                    0
                },
                trouble: None,
                on_empty: match (pod.open, pod.seen_open) {
                    (true, _) => OnEmpty::Starts,
                    (false, true) => OnEmpty::RefusedSoon,
                    (false, false) => OnEmpty::Refused,
                },
                without_data: pod.refused && self.data(name) == Data::None,
            };
            (name.clone(), view)
        });
        let claims = self.claims.keys().map(|name| {
            (
                name.clone(),
                ClaimView {
                    ours: true,
                    terminating: false,
                },
            )
        });
        let membership = leader.map(|_| Membership {
            cluster_id: self.cluster_id,
            members: self.members.values().cloned().collect(),
        });
        use_it(&View {
            names: NAMES,
            spec: &self.cluster.spec,
            plan: None,
            recorded: &status,
            membership,
            silence: String::new(),
            answers: answers.collect(),
            pods: pods.collect(),
            claims: claims.collect(),
            now: self.now,
        })
    }

    /// The operator decides, writes its status and takes its step.
    pub(super) fn step(&mut self) -> Decision {
        let (decision, status) = self.with_view(|view| {
            let decision = decide(view);
            let status = status_of(&self.cluster, view, &decision);
            (decision, status)
        });
        let begun = self.status().cluster_id.is_none() && status.cluster_id.is_some();
        if begun && status.roster.len() == 1 && self.status().intent.is_some() {
            self.assert_needs_its_data(&status.roster[0].name);
        }
        self.cluster.status = Some(status);
        let call = matches!(
            decision.step,
            Step::AddMember { .. } | Step::PromoteMember { .. } | Step::RemoveMember { .. }
        );
        if !(call && std::mem::take(&mut self.lose_call)) {
            self.apply(&decision.step);
        }
        self.now += SignedDuration::from_secs(1);
        decision
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::CreateClaim { member } => {
                let new = self.claims.insert(member.clone(), Data::None);
                assert!(new.is_none(), "{member} has a volume");
            }
            Step::CreatePod {
                member,
                start,
                peers,
            } => self.create(member, *start, peers),
            Step::RequireData { member } => {
                let pod = self.pods.get_mut(member).expect("a pod");
                assert!(pod.open, "the pod of {member} is changed twice");
                pod.open = false;
            }
            Step::AddMember { member: name } => {
                for voter in self.voters() {
                    self.assert_needs_its_data(&voter);
                }
                assert!(self.listed(name).is_none(), "{name} is added twice");
                assert!(
                    self.members.values().all(|one| !one.learner),
                    "two learners"
                );
                assert!(i32::try_from(self.members.len()).unwrap() < self.cluster.spec.size);
                self.ids += 1;
                self.members
                    .insert(self.ids, member(self.ids, name, "", true));
            }
            Step::PromoteMember { id, member } => {
                self.assert_needs_its_data(member);
                let member = self.members.get_mut(id).expect("a member");
                assert!(member.has_started());
                member.learner = false;
            }
            Step::RemoveMember { id, member } => {
                assert!(self.has_quorum());
                assert_eq!(Self::named(&self.members[id]), *member);
                self.members.remove(id);
                assert!(self.has_quorum(), "removing {member} costs the majority");
            }
            Step::DeletePod { member } => {
                let pod = self.pods.get_mut(member).expect("a pod");
                pod.terminating = true;
                let ended = pod.ended || pod.hangs || self.status().cluster_id.is_none();
                let ended = ended || self.data(member) != Data::Good;
                assert!(
                    ended || self.listed(member).is_none(),
                    "the pod of member {member} is deleted"
                );
            }
            Step::DeleteClaim { member } => {
                if self.status().cluster_id.is_some() {
                    assert!(
                        self.listed(member).is_none(),
                        "the volume of member {member} is deleted"
                    );
                    assert!(
                        !self.pods.contains_key(member),
                        "the volume of {member} is in use"
                    );
                }
                self.claims.remove(member);
            }
            Step::Await(time) => self.now += SignedDuration::try_from(*time).unwrap(),
            Step::Wait | Step::Stop | Step::Rest => self.now += SignedDuration::from_secs(15),
            Step::MoveLeader { id, .. } => self.heir = Some(*id),
            Step::Record(_) | Step::Forget => {}
            Step::Reincarnate(_) | Step::CreateSeed(_) => panic!("no restore was asked for"),
        }
    }

    fn create(&mut self, name: &str, start: Start, peers: &[String]) {
        assert!(!self.pods.contains_key(name), "{name} has a pod");
        if start == Start::New {
            assert!(
                self.status().cluster_id.is_none(),
                "{name} begins a second cluster"
            );
            assert!(
                self.pods.is_empty(),
                "{name} begins a cluster beside another"
            );
        } else if self.listed(name).is_some_and(Member::has_started) {
            assert!(
                self.claims.contains_key(name),
                "{name} gets a pod without its data"
            );
        }
        let pod = Pod {
            start,
            peers: peers.to_vec(),
            terminating: false,
            ended: false,
            hangs: false,
            open: start != Start::Rejoin,
            seen_open: start != Start::Rejoin,
            partitioned: false,
            refused: false,
            since: self.now,
            data: Data::None,
        };
        self.pods.insert(name.to_owned(), pod);
    }

    pub(super) fn meet(&mut self, fate: &Fate) {
        let nth = |names: Vec<String>, at: &usize| {
            (!names.is_empty()).then(|| names[at % names.len()].clone())
        };
        let pods: Vec<String> = self.pods.keys().cloned().collect();
        match fate {
            Fate::Steps(count) => {
                for _ in 0..*count {
                    self.step();
                    self.settle();
                }
            }
            Fate::LoseCall => self.lose_call = true,
            Fate::Resize(size) => self.cluster.spec.size = *size,
            Fate::RemoveByHand(at) => {
                let Some(name) = nth(self.voters(), at) else {
                    return;
                };
                let Some(id) = self.listed(&name).map(|one| one.id) else {
                    return;
                };
                if self.has_quorum() && self.voters().len() > 2 {
                    self.members.remove(&id);
                }
            }
            Fate::DeletePod(at)
            | Fate::Evict(at)
            | Fate::Corrupt(at)
            | Fate::Empty(at)
            | Fate::Partition(at)
            | Fate::Hang(at)
            | Fate::DeleteAll(at) => {
                let Some(name) = nth(pods, at) else { return };
                match fate {
                    Fate::Evict(_) => self.pods.get_mut(&name).expect("it").ended = true,
                    Fate::Corrupt(_) if self.data(&name) == Data::Good => {
                        self.set_data(&name, Data::Spoilt);
                    }
                    Fate::Corrupt(_) => {}
                    Fate::Empty(_) => self.empty(&name),
                    Fate::Partition(_) => self.partition(&name),
                    Fate::Hang(_) => self.pods.get_mut(&name).expect("it").hangs = true,
                    _ => {
                        self.pods.remove(&name);
                        if matches!(fate, Fate::DeleteAll(_)) {
                            self.claims.remove(&name);
                        }
                    }
                }
            }
        }
    }

    /// Empties the data folder of a member whose pod stays.
    pub(super) fn empty(&mut self, name: &str) {
        self.set_data(name, Data::None);
    }

    /// The node of a pod does not see its changes from now on; or it does again.
    pub(super) fn partition(&mut self, name: &str) {
        let pod = self.pods.get_mut(name).expect("a pod");
        pod.partitioned = !pod.partitioned;
    }

    pub(super) fn pods(&self) -> usize {
        self.pods.len()
    }

    /// The members without a vote that have started.
    pub(super) fn learners(&self) -> Vec<String> {
        let learners = self.members.values();
        let learners = learners.filter(|one| one.learner && one.has_started());
        learners.map(Self::named).collect()
    }

    /// Lets the operator work until it rests, stops, or waits for what does not come.
    pub(super) fn converge(&mut self) -> Decision {
        // For as long as a node sees nothing, its member is waited for.
        for pod in self.pods.values_mut() {
            pod.partitioned = false;
        }
        let mut last = None;
        let mut waits = 0;
        for _ in 0..2000 {
            let decision = self.step();
            self.settle();
            // Trying again what hangs, without a majority, may go on for ever.
            let in_vain = ["NoQuorum", "RecoveringMember"].contains(&decision.reason);
            waits = match decision.step {
                Step::Rest | Step::Stop => return decision,
                Step::Wait => waits + 1,
                _ if in_vain && !self.has_quorum() => waits + 1,
                _ => 0,
            };
            if waits > 200 {
                return decision;
            }
            last = Some(decision);
        }
        panic!("it does not converge; last: {last:?}\n{:#?}", self.status());
    }

    /// As many members as asked for, all of them working, and nothing left over.
    pub(super) fn assert_well(&self) {
        let size = usize::try_from(self.cluster.spec.size).unwrap();
        assert_eq!(self.voters().len(), size);
        assert_eq!(self.members.len(), size);
        assert_eq!(self.working(), size);
        assert_eq!(self.pods.len(), size, "{:#?}", self.pods);
        let claims = if self.cluster.spec.storage.is_some() {
            size
        } else {
            0
        };
        assert_eq!(self.claims.len(), claims);
        assert_eq!(self.status().intent, None);
    }

    /// Nothing was started where a cluster was lost.
    pub(super) fn assert_nothing_new(&self, begun: u32) {
        assert_eq!(self.begun, begun);
    }
}

fn member(id: u64, known_as: &str, name: &str, learner: bool) -> Member {
    Member {
        id,
        name: name.to_owned(),
        peer_urls: vec![NAMES.peer_url(known_as)],
        client_urls: Vec::new(),
        learner,
    }
}
