//! What must hold whatever happens, and the decisions a person would ask about.

use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::{
    Decision, Step, decide,
    world::{Fate, World},
};
use crate::{
    etcd::{Member, MemberStatus},
    view::View,
};

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => (1_u8..12).prop_map(Fate::Steps),
        1 => any::<usize>().prop_map(Fate::DeletePod),
        1 => any::<usize>().prop_map(Fate::Evict),
        1 => any::<usize>().prop_map(Fate::Corrupt),
        2 => any::<usize>().prop_map(Fate::Empty),
        1 => any::<usize>().prop_map(Fate::Partition),
        1 => any::<usize>().prop_map(Fate::DeleteAll),
        1 => any::<usize>().prop_map(Fate::Hang),
        1 => any::<usize>().prop_map(Fate::RemoveByHand),
        2 => (1..=7).prop_map(Fate::Resize),
        2 => Just(Fate::LoseCall),
    ];
    vec(fate, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Every step on the way is judged by the world: no second cluster, no member without its
    /// data, no step that costs the majority.
    #[test]
    fn from_any_reachable_state_it_converges_and_does_no_harm(
        size in 1..=7,
        volumes: bool,
        fates in fates(),
    ) {
        let mut world = World::new(size, volumes);
        for fate in &fates {
            world.meet(fate);
            world.settle();
        }
        let begun = world.begun;
        let known = world.status().cluster_id.is_some();
        let lost = known && !world.can_come_back();
        let end = world.converge();
        if end.step == Step::Rest { world.assert_well() } else {
            prop_assert!(lost, "it ends with {end:?}");
            world.assert_nothing_new(begun);
        }
        if known {
            world.assert_nothing_new(begun);
        }
    }
}

fn built(size: i32, volumes: bool) -> World {
    let mut world = World::new(size, volumes);
    let end = world.converge();
    assert_eq!(end.step, Step::Rest, "{end:?}");
    world.assert_well();
    world
}

#[test]
fn a_cluster_is_built_one_member_at_a_time() {
    for (size, volumes) in [(1, false), (3, true), (5, false), (7, true)] {
        assert_eq!(built(size, volumes).begun, 1);
    }
}

#[test]
fn majority_lost_without_volumes_stops_and_starts_nothing() {
    let mut world = built(3, false);
    world.meet(&Fate::DeletePod(0));
    world.meet(&Fate::DeletePod(0));
    let end = world.converge();
    assert_eq!((end.step, end.reason), (Step::Stop, "QuorumLost"));
    assert!(
        end.message.contains("the data of 2 of 3 members is gone"),
        "{}",
        end.message
    );
    world.assert_nothing_new(1);
}

#[test]
fn all_pods_lost_with_volumes_come_back_on_them() {
    let mut world = built(3, true);
    for _ in 0..3 {
        world.meet(&Fate::DeletePod(0));
    }
    let before = world.status().roster;
    assert_eq!(world.converge().step, Step::Rest);
    world.assert_well();
    assert_eq!(world.status().roster, before, "the same members");
}

#[test]
fn a_paused_cluster_is_left_alone() {
    let mut world = built(3, false);
    world.spec().paused = true;
    world.meet(&Fate::DeletePod(1));
    let decision = world.step();
    assert_eq!((decision.step, decision.reason), (Step::Wait, "Paused"));
    assert_eq!(world.status().phase, "Paused");
    world.spec().paused = false;
    assert_eq!(world.converge().step, Step::Rest);
    world.assert_well();
}

#[test]
fn what_cannot_be_done_yet_is_refused_before_anything_is_started() {
    let cases = [
        (
            json!({ "version": "3.2.13" }),
            "UnsupportedVersion",
            "\"3.4.23\"",
        ),
        (
            json!({ "version": "latest" }),
            "InvalidVersion",
            "\"3.4.23\"",
        ),
        (
            json!({ "TLS": { "static": {} } }),
            "TLSNotSupported",
            "remove spec.TLS",
        ),
        (
            json!({ "backup": {} }),
            "BackupNotSupported",
            "remove spec.backup",
        ),
        (
            json!({ "restore": {} }),
            "RestoreNotSupported",
            "remove spec.restore",
        ),
    ];
    for (mut spec, reason, what_to_do) in cases {
        spec["size"] = 3.into();
        let mut world = World::new(3, false);
        *world.spec() = serde_json::from_value(spec).unwrap();
        let decision = world.step();
        assert_eq!((decision.step, decision.reason), (Step::Stop, reason));
        assert!(
            decision.message.contains(what_to_do),
            "{}",
            decision.message
        );
        assert_eq!(world.status().phase, "Failed");
    }
}

#[test]
fn another_version_is_refused_and_the_cluster_cared_for_as_it_is() {
    let mut world = built(3, false);
    "3.5.0".clone_into(&mut world.spec().version);
    world.meet(&Fate::DeletePod(2));
    let end = world.converge();
    assert_eq!((end.step, end.reason), (Step::Stop, "UpgradeNotSupported"));
    world.assert_well();
    assert_eq!(world.status().phase, "Running");
}

#[test]
fn a_lost_status_is_read_from_etcd_again() {
    let mut world = built(3, true);
    world.forget_status();
    assert_eq!(world.converge().step, Step::Rest);
    world.assert_well();
    assert_eq!(world.begun, 1);
    assert!(world.status().cluster_id.is_some());
}

#[test]
fn a_lost_status_begins_no_cluster_over_volumes() {
    let mut world = built(3, true);
    for _ in 0..3 {
        world.meet(&Fate::DeletePod(0));
    }
    world.forget_status();
    let end = world.converge();
    assert_eq!((end.step, end.reason), (Step::Stop, "DataExists"));
    assert_eq!(world.begun, 1);
}

#[test]
fn the_newest_member_is_the_one_that_goes() {
    let mut world = built(5, true);
    let roster = world.status().roster;
    world.meet(&Fate::Resize(3));
    assert_eq!(world.converge().step, Step::Rest);
    assert_eq!(world.status().roster, roster[..3]);
}

/// What is decided when etcd tells something else than the world would.
fn told_otherwise(world: &World, change: impl FnOnce(&mut View<'_>)) -> Decision {
    world.with_view(|view| {
        let mut view = view.clone();
        change(&mut view);
        decide(&view)
    })
}

#[test]
fn a_member_of_another_cluster_stops_everything() {
    let world = built(3, true);
    let name = world.status().roster[1].name.clone();
    let decision = told_otherwise(&world, |view| {
        view.answers.get_mut(&name).unwrap().cluster_id += 1;
    });
    assert_eq!(
        (decision.step, decision.reason),
        (Step::Stop, "TwoClusters")
    );
    assert!(decision.message.contains(&name), "{}", decision.message);
}

#[test]
fn a_list_of_another_cluster_stops_everything() {
    let decision = told_otherwise(&built(3, true), |view| {
        view.membership.as_mut().unwrap().cluster_id += 1;
    });
    assert_eq!(
        (decision.step, decision.reason),
        (Step::Stop, "TwoClusters")
    );
}

#[test]
fn a_leader_that_has_lost_its_log_stops_everything() {
    let world = built(3, true);
    assert!(world.status().raft_index > 0);
    let decision = told_otherwise(&world, |view| {
        for answer in view.answers.values_mut() {
            answer.raft_index = 0;
        }
    });
    assert_eq!(
        (decision.step, decision.reason),
        (Step::Stop, "TwoClusters")
    );
    assert!(
        decision
            .message
            .contains("its data was lost or replaced by older data"),
        "{}",
        decision.message
    );
}

#[test]
fn a_member_that_somebody_else_added_keeps_the_size_from_being_followed() {
    let mut world = built(3, true);
    world.meet(&Fate::Resize(5));
    let decision = told_otherwise(&world, |view| {
        view.membership.as_mut().unwrap().members.push(Member {
            id: 0xabc,
            name: "guest".to_owned(),
            peer_urls: vec!["http://10.0.0.9:2380".to_owned()],
            client_urls: vec!["http://10.0.0.9:2379".to_owned()],
            learner: false,
        });
    });
    assert_eq!(
        (decision.step, decision.reason),
        (Step::Stop, "UnknownMember")
    );
    for part in ["http://10.0.0.9:2380", "etcdctl member remove"] {
        assert!(decision.message.contains(part), "{}", decision.message);
    }
}

/// The name of the member that has been there for longest.
fn first(world: &World) -> String {
    world.status().roster[0].name.clone()
}

#[test]
fn emptied_folder_of_the_first_member_begins_no_second_cluster() {
    for volumes in [false, true] {
        let mut world = built(3, volumes);
        let emptied = first(&world);
        world.empty(&emptied);
        assert_eq!(world.converge().step, Step::Rest);
        world.assert_well();
        world.assert_nothing_new(1);
        assert_ne!(first(&world), emptied, "another took its place");
    }
}

#[test]
fn emptied_folder_of_a_single_member_is_reported_and_not_started_empty() {
    for volumes in [false, true] {
        let mut world = built(1, volumes);
        let only = first(&world);
        world.empty(&only);
        let end = world.converge();
        assert_eq!((end.step, end.reason), (Step::Stop, "QuorumLost"));
        assert!(
            end.message.contains("the data of 1 of 1 members is gone"),
            "{}",
            end.message
        );
        assert_eq!(world.status().phase, "Failed");
        world.assert_nothing_new(1);
    }
}

#[test]
fn member_whose_node_has_not_seen_the_change_gets_no_vote() {
    let mut world = built(1, false);
    world.meet(&Fate::Resize(2));
    while world.learners().is_empty() || world.pods() < 2 {
        world.step();
        world.settle();
    }
    let learner = world.learners().remove(0);
    world.partition(&learner);
    let mut last = None;
    for _ in 0..20 {
        last = Some(world.step());
        world.settle();
    }
    let last = last.unwrap();
    assert_eq!(
        (last.reason, world.learners()),
        ("MemberJoined", vec![learner.clone()]),
        "{last:?}"
    );
    world.partition(&learner);
    assert_eq!(world.converge().step, Step::Rest);
    world.assert_well();
}

/// Steps until the first member's pod is there.
fn beginning() -> World {
    let mut world = World::new(1, true);
    while world.pods() == 0 {
        world.step();
    }
    world
}

#[test]
fn first_member_that_is_ready_and_cannot_be_reached_stays() {
    let mut world = beginning();
    let later = jiff::SignedDuration::from_hours(1);
    world.step();
    let decision = told_otherwise(&world, |view| {
        view.answers.clear();
        view.membership = None;
        "connection refused".clone_into(&mut view.silence);
        for pod in view.pods.values_mut() {
            (pod.ready, pod.restarts) = (true, 1);
        }
        view.now += later;
    });
    assert_eq!(
        (decision.step, decision.reason),
        (Step::Wait, "MemberUnreachable")
    );
    for part in ["connection refused", "port 2379"] {
        assert!(decision.message.contains(part), "{}", decision.message);
    }
}

#[test]
fn first_member_on_the_data_of_another_cluster_stops_everything() {
    let mut world = beginning();
    world.settle();
    let decision = told_otherwise(&world, |view| {
        for answer in view.answers.values_mut() {
            answer.cluster_id += 1;
        }
        view.membership.as_mut().unwrap().cluster_id += 1;
    });
    assert_eq!(
        (decision.step, decision.reason),
        (Step::Stop, "TwoClusters")
    );
}

#[test]
fn leader_just_elected_that_knows_of_fewer_entries_raises_no_alarm() {
    let world = built(3, true);
    let decision = told_otherwise(&world, |view| {
        let leads = |answer: &&mut MemberStatus| answer.leader == Some(answer.member_id);
        let mut answers = view.answers.values_mut();
        answers.find(leads).unwrap().raft_index = 1;
    });
    assert_eq!(decision.step, Step::Rest, "{decision:?}");
}
