//! What the operator promises, one scenario each, in virtual time against the simulated etcd: played
//! once, and disturbed in every way there is: killed after each write to the API server, killed after
//! each call to etcd, with that call or its answer lost, with late watches, in a storm of conflicts.
//!
//! A client writes all the while; at the end every write that was acknowledged is there, in order.

mod healing;
mod many;
mod play;
mod scaling;

pub(crate) use play::make;
use play::{disturb, play};

macro_rules! scenarios {
    (
        disturbed_always: [$($short:ident in $short_module:ident),* $(,)?],
        disturbed_on_request: [$($long:ident in $long_module:ident),* $(,)?] $(,)?
    ) => {
        mod undisturbed {
            $(#[test]
            fn $short() {
                super::play(super::$short_module::$short);
            })*
            $(#[test]
            fn $long() {
                super::play(super::$long_module::$long);
            })*
        }
        mod disturbed {
            $(#[test]
            fn $short() {
                super::disturb(super::$short_module::$short);
            })*
            $(#[test]
            #[ignore = "hundreds of runs: make etcd-scenarios"]
            fn $long() {
                super::disturb(super::$long_module::$long);
            })*
        }
    };
}

scenarios! {
    disturbed_always: [
        one_member in scaling,
        three_members in scaling,
        the_leader_is_the_one_removed in scaling,
        one_member_recovers in healing,
        single_member_with_emptied_folder_is_not_started_empty in healing,
    ],
    disturbed_on_request: [
        five_members in scaling,
        seven_members in scaling,
        three_members_with_volumes in scaling,
        paused_nothing_is_done in scaling,
        the_status_names_the_members_that_are_ready in scaling,
        resized_from_three_to_five in scaling,
        resized_from_five_to_three in scaling,
        resized_from_three_to_one_to_three in scaling,
        deleted_takes_everything_with_it in scaling,
        one_member_recovers_on_its_volume in healing,
        two_of_five_recover in healing,
        all_pods_deleted_with_volumes in healing,
        all_pods_deleted_without_volumes in healing,
        the_majority_lost_with_volumes in healing,
        the_majority_lost_without_volumes in healing,
        a_data_folder_corrupted in healing,
        first_member_with_emptied_folder_begins_no_second_cluster in healing,
        member_with_emptied_folder_is_replaced_on_its_volume in healing,
        member_without_its_data_does_not_vote in healing,
        single_member_with_emptied_volume_is_not_started_empty in healing,
        a_member_cut_off_comes_back in healing,
    ],
}
