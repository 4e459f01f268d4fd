//! What the operator promises, one scenario each, in virtual time against the simulated etcd: played
//! once, and disturbed in every way there is: killed after each write to the API server, killed after
//! each call to etcd, with that call or its answer lost, with late watches, in a storm of conflicts.
//!
//! A client writes all the while; at the end every write that was acknowledged is there, in order.

mod backup;
mod healing;
mod many;
mod play;
mod restore;
mod scaling;

pub(crate) use backup::{backup, secret};
pub(crate) use play::make;
use play::{disturb, play};
pub(crate) use restore::restore;

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
        backup_is_taken_once in backup,
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
        two_of_many_backups_are_kept in backup,
        wrong_secret_then_the_right_one in backup,
        store_that_breaks_down_is_asked_again in backup,
        flipped_bit_is_found_and_the_backup_taken_again in backup,
        endpoint_of_another_namespace_is_refused in backup,
        data_lost_by_all_members_is_restored in restore,
        volumes_from_before_are_kept_and_then_deleted in restore,
        running_cluster_is_replaced_only_when_asked in restore,
        damaged_backup_leaves_the_cluster_untouched in restore,
        cluster_that_does_not_exist_is_made in restore,
        seed_that_ends_is_made_again in restore,
    ],
}
