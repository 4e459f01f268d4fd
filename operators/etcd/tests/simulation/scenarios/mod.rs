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
    ($($module:ident: [$($name:ident),* $(,)?]),* $(,)?) => {
        mod undisturbed {
            $($(#[test]
            fn $name() {
                super::play(super::$module::$name);
            })*)*
        }
        mod disturbed {
            $($(#[test]
            fn $name() {
                super::disturb(super::$module::$name);
            })*)*
        }
    };
}

scenarios! {
    scaling: [
        one_member,
        three_members,
        five_members,
        seven_members,
        three_members_with_volumes,
        paused_nothing_is_done,
        the_status_names_the_members_that_are_ready,
        resized_from_three_to_five,
        resized_from_five_to_three,
        resized_from_three_to_one_to_three,
        the_leader_is_the_one_removed,
        deleted_takes_everything_with_it,
    ],
    healing: [
        one_member_recovers,
        one_member_recovers_on_its_volume,
        two_of_five_recover,
        all_pods_deleted_with_volumes,
        all_pods_deleted_without_volumes,
        the_majority_lost_with_volumes,
        the_majority_lost_without_volumes,
        a_data_folder_corrupted,
        a_member_cut_off_comes_back,
    ],
}
