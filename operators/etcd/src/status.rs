//! The status: what a person on call wants to know, and what the next decision needs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;

use crate::{
    decision::{Decision, Step},
    kind::{Action, EtcdCluster, EtcdClusterStatus, Intent, MemberRecord, MembersStatus},
    member::{CLIENT_PORT, hex},
    objects::client_name,
    restore::Plan,
    view::View,
};

/// Reasons that mean that something is wrong, though the operator goes on.
const TROUBLE: [&str; 7] = [
    "MemberUnready",
    "MemberUnreachable",
    "MemberNotStarting",
    "NoSafeRemoval",
    "NoQuorum",
    "NoAnswer",
    "RecoveringMember",
];

/// The status as it is written before a step is taken: with what the step sets out to do.
pub(crate) fn status_of(
    cluster: &EtcdCluster,
    view: &View<'_>,
    decision: &Decision,
) -> EtcdClusterStatus {
    let before = view.recorded;
    let mut status = before.clone();
    remember(view, decision, &mut status);
    let pods = |ready: bool| {
        let names = status.roster.iter().map(|member| &member.name);
        let is_ready = |name: &&String| view.pods.get(*name).is_some_and(|pod| pod.ready);
        let mut names: Vec<String> = names
            .filter(|name| is_ready(name) == ready)
            .cloned()
            .collect();
        names.sort_unstable();
        names
    };
    status.members = MembersStatus {
        ready: pods(true),
        unready: pods(false),
    };
    let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    status.size = count(status.roster.len());
    status.ready_members = count(status.members.ready.len());
    status.leader = leader(view, &status.roster);
    if status.cluster_id.is_some() {
        status.service_name = client_name(&cluster.name_any());
        status.client_port = Some(CLIENT_PORT);
    }
    status.phase = phase(view, decision, &status).to_owned();
    status.observed_generation = cluster.metadata.generation;
    status.conditions = conditions(view, decision, &status);
    // How long the log is changes all the time; it is news only beside other news.
    if alike(before, &status) {
        status.raft_index = before.raft_index;
    }
    status
}

/// Nothing is left of what was recorded of the members; the seed is the first of the next ones.
fn reincarnate(view: &View<'_>, plan: &Plan, status: &mut EtcdClusterStatus) {
    let seed = plan.seed(view.names.cluster);
    status.incarnation = plan.incarnation;
    status.token = Some(plan.token.clone());
    status.seed = Some(seed.clone());
    status.intent = Some(Intent {
        action: Action::Bootstrap,
        member: seed,
        id: None,
        reason: format!("the cluster begins again from {}", plan.source.key),
        start_time: Some(Time(view.now)),
    });
    status.cluster_id = None;
    status.roster.clear();
    status.raft_index = 0;
    // The members of before may have had another one.
    status.current_version.clear();
}

/// What later decisions rest upon.
fn remember(view: &View<'_>, decision: &Decision, status: &mut EtcdClusterStatus) {
    match &decision.step {
        Step::Record(intent) => {
            if matches!(intent.action, Action::Bootstrap | Action::Add) {
                let (serial, name) = view.next_member();
                if name == intent.member {
                    status.serial = serial;
                }
            }
            status.intent = Some(intent.clone());
        }
        Step::Forget => status.intent = None,
        Step::Reincarnate(plan) => {
            reincarnate(view, plan, status);
            return;
        }
        _ => {}
    }
    let stopped = matches!(decision.step, Step::Stop) && decision.reason == "TwoClusters";
    // A first member that could still begin the cluster a second time has not begun it.
    let beginning = status.cluster_id.is_none()
        && status
            .intent
            .as_ref()
            .is_some_and(|intent| intent.action == Action::Bootstrap);
    let Some(told) = view.membership.as_ref().filter(|_| !stopped && !beginning) else {
        return;
    };
    status.cluster_id = Some(hex(told.cluster_id));
    if let Some(seed) = &status.seed {
        let mut names = told
            .members
            .iter()
            .filter_map(|member| view.names.of(member));
        if !names.any(|name| name == *seed) && !view.pods.contains_key(seed) {
            status.seed = None;
        }
    }
    if status.current_version.is_empty() {
        view.spec.version().clone_into(&mut status.current_version);
    }
    let mut roster: Vec<MemberRecord> = told
        .members
        .iter()
        .map(|member| MemberRecord {
            name: view.names.of(member).unwrap_or_else(|| hex(member.id)),
            id: hex(member.id),
            learner: member.learner,
        })
        .collect();
    let known = |record: &MemberRecord| {
        let place = view
            .recorded
            .roster
            .iter()
            .position(|old| old.id == record.id);
        (place.unwrap_or(usize::MAX), record.id.clone())
    };
    roster.sort_by_key(known);
    status.roster = roster;
    let voters = view
        .answers
        .values()
        .filter(|answer| !answer.learner && answer.leader.is_some());
    if let Some(shortest) = voters.map(|answer| answer.raft_index).min() {
        let shortest = i64::try_from(shortest).unwrap_or(0);
        status.raft_index = status.raft_index.max(shortest);
    }
}

fn leader(view: &View<'_>, roster: &[MemberRecord]) -> Option<String> {
    view.membership.as_ref()?;
    let mut leaders = view.answers.values().filter_map(|answer| answer.leader);
    let leader = hex(leaders.next()?);
    let record = roster.iter().find(|record| record.id == leader)?;
    Some(record.name.clone())
}

fn phase(view: &View<'_>, decision: &Decision, status: &EtcdClusterStatus) -> &'static str {
    let creating =
        status.cluster_id.is_none() || matches!(view.recorded.phase.as_str(), "" | "Creating");
    match (&decision.step, decision.reason) {
        (_, "Paused") => "Paused",
        (Step::Stop, _) if status.cluster_id.is_none() => "Failed",
        (Step::Stop, "QuorumLost" | "TwoClusters") => "Failed",
        (Step::Stop | Step::Rest, _) => "Running",
        _ if creating => "Creating",
        _ if recovering(view, decision) => "Recovering",
        _ if scaling(view, status) => "Scaling",
        _ => "Running",
    }
}

/// Whether something is being mended.
fn recovering(view: &View<'_>, decision: &Decision) -> bool {
    let members = view.membership.as_ref().map(|told| told.members.len());
    let size = usize::try_from(view.spec.size).unwrap_or(0);
    let intent = match &decision.step {
        Step::Record(intent) => Some(intent),
        Step::Forget => None,
        _ => view.recorded.intent.as_ref(),
    };
    let replacing = intent.is_some_and(|intent| {
        intent.action == Action::Remove && members.is_some_and(|members| members <= size)
    });
    replacing || TROUBLE.contains(&decision.reason)
}

fn scaling(view: &View<'_>, status: &EtcdClusterStatus) -> bool {
    status.cluster_id.is_some()
        && (status.size != view.spec.size || status.roster.iter().any(|member| member.learner))
}

fn conditions(view: &View<'_>, decision: &Decision, status: &EtcdClusterStatus) -> Vec<Condition> {
    let stopped = matches!(decision.step, Step::Stop);
    let acts = !matches!(decision.step, Step::Wait | Step::Stop | Step::Rest);
    let trouble = TROUBLE.contains(&decision.reason);
    let (ready, asked) = (status.ready_members, view.spec.size);
    let healthy = status
        .roster
        .iter()
        .filter(|member| view.healthy(&member.name))
        .count();
    let even = if asked % 2 == 0 {
        format!(
            "; {asked} members survive no more failures than {} would",
            asked - 1
        )
    } else {
        String::new()
    };
    let begun = status.cluster_id.is_some();
    let available = match &view.membership {
        Some(told) if begun => (
            true,
            "QuorumAnswers",
            format!("{healthy} of {} members answer{even}", told.members.len()),
        ),
        None if begun => (
            false,
            "NoQuorum",
            format!("no majority of the members answers: {}", view.silence),
        ),
        _ => (false, decision.reason, decision.message.clone()),
    };
    let progressing = match &decision.step {
        Step::Rest => (false, "AsExpected", decision.message.clone()),
        Step::Stop => (false, decision.reason, decision.message.clone()),
        Step::Wait if decision.reason == "Paused" => {
            (false, decision.reason, decision.message.clone())
        }
        _ => (true, decision.reason, decision.message.clone()),
    };
    let created = status.phase != "Creating";
    let degraded = if stopped || trouble {
        (true, decision.reason, decision.message.clone())
    } else if created && acts && ready < status.size {
        (
            true,
            "MembersUnready",
            format!(
                "{ready} of {} members are ready: {}",
                status.size, decision.message
            ),
        )
    } else {
        (false, "AsExpected", String::new())
    };
    let recovering = if recovering(view, decision) && !stopped {
        (true, decision.reason, decision.message.clone())
    } else {
        (false, "AsExpected", String::new())
    };
    let scaling = if scaling(view, status) {
        (
            true,
            decision.reason,
            format!("{} members, {asked} asked for", status.size),
        )
    } else {
        (false, "AsExpected", String::new())
    };
    [
        ("Available", available),
        ("Progressing", progressing),
        ("Degraded", degraded),
        ("Recovering", recovering),
        ("Scaling", scaling),
    ]
    .map(|(kind, (holds, reason, message))| Condition {
        type_: kind.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: status.observed_generation,
        // Set by the framework, which knows since when.
        last_transition_time: Time(view.now),
    })
    .into()
}

/// Whether two statuses say the same, but for times and the length of the log.
fn alike(one: &EtcdClusterStatus, other: &EtcdClusterStatus) -> bool {
    let plain = |status: &EtcdClusterStatus| {
        let mut status = status.clone();
        status.raft_index = 0;
        status.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
        for condition in &mut status.conditions {
            condition.last_transition_time = Time(jiff::Timestamp::UNIX_EPOCH);
        }
        status
    };
    plain(one) == plain(other)
}

/// The reason that the status gives for being degraded, or none.
pub(crate) fn known_trouble(status: &EtcdClusterStatus) -> Option<&str> {
    let degraded = status
        .conditions
        .iter()
        .find(|one| one.type_ == "Degraded")?;
    (degraded.status == "True").then_some(degraded.reason.as_str())
}
