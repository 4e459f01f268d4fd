//! Which step of a backup is next: a pure function of the spec, the status and the time.
//!
//! Pending → Planned → Uploading → Checked → Committed → Waiting or Succeeded. What a step is
//! about to do is in the status before it is done, so an operator that dies anywhere goes on with
//! the same sequence and the same key.

use jiff::Timestamp;

use super::{
    due,
    kind::{BackupRun, BackupStatus, EtcdBackupSpec},
};

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A sequence and a key are chosen and recorded.
    Plan,
    /// The snapshot goes from a member into the store. An upload that is recorded goes on: a step
    /// that began another one each time would never end where the operator is killed often.
    Upload(BackupRun),
    /// The object is made of its parts and read back, and its manifest is written.
    Commit(BackupRun),
    /// Backups that are too many are chosen, recorded and deleted; before the status says that all
    /// is done.
    Prune,
    /// Nothing is due before this time.
    WaitUntil(Timestamp),
    /// Nothing is begun until the spec changes.
    Suspended,
    /// The only backup was taken.
    Rest,
}

/// The phases, as the status names them.
pub(crate) mod phase {
    pub(crate) const PLANNED: &str = "Planned";
    pub(crate) const UPLOADING: &str = "Uploading";
    pub(crate) const CHECKED: &str = "Checked";
    pub(crate) const COMMITTED: &str = "Committed";
    pub(crate) const WAITING: &str = "Waiting";
    pub(crate) const SUSPENDED: &str = "Suspended";
    pub(crate) const SUCCEEDED: &str = "Succeeded";
}

/// The next step.
pub(crate) fn decide(spec: &EtcdBackupSpec, status: &BackupStatus, now: Timestamp) -> Step {
    match (status.phase.as_str(), &status.run) {
        (phase::PLANNED | phase::UPLOADING, Some(run)) => return Step::Upload(run.clone()),
        (phase::CHECKED, Some(run)) => return Step::Commit(run.clone()),
        (phase::COMMITTED, _) => return Step::Prune,
        _ => {}
    }
    if !status.pruning.is_empty() {
        return Step::Prune;
    }
    let Some(interval) = spec.interval() else {
        return match (status.last.is_some(), spec.suspended()) {
            (true, _) => Step::Rest,
            (false, true) => Step::Suspended,
            (false, false) => Step::Plan,
        };
    };
    if spec.suspended() {
        return Step::Suspended;
    }
    let recorded = status.next_run.as_ref().map(|time| time.0);
    let due = due::due(interval, recorded, now);
    if due <= now {
        Step::Plan
    } else {
        Step::WaitUntil(due)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::backup::kind::{BackupPolicy, LastBackup};

    fn spec(interval: Option<i64>, suspend: bool) -> EtcdBackupSpec {
        EtcdBackupSpec {
            backup_policy: Some(BackupPolicy {
                backup_interval_in_second: interval,
                suspend,
                ..BackupPolicy::default()
            }),
            ..EtcdBackupSpec::default()
        }
    }

    proptest! {
        #[test]
        fn run_that_was_recorded_goes_on_under_its_own_key(
            phase in prop::sample::select(vec!["Planned", "Uploading", "Checked"]),
            interval in prop::option::of(1_i64..1000),
            suspend in prop::bool::ANY,
            sequence in 1_i64..1000,
        ) {
            let run = BackupRun { sequence, path: "b/k".to_owned(), ..BackupRun::default() };
            let status = BackupStatus {
                phase: phase.to_owned(),
                run: Some(run.clone()),
                ..BackupStatus::default()
            };
            let step = decide(&spec(interval, suspend), &status, Timestamp::UNIX_EPOCH);
            prop_assert!(matches!(step, Step::Upload(one) | Step::Commit(one) if one == run));
        }

        /// A manifest is written by `Commit` alone, which follows only what was uploaded and
        /// checked.
        #[test]
        fn nothing_is_committed_that_was_not_checked(
            phase in "(|Pending|Planned|Uploading|Committed|Waiting|Suspended|Succeeded)",
            has_run in prop::bool::ANY,
            interval in prop::option::of(1_i64..1000),
        ) {
            let status = BackupStatus {
                phase,
                run: has_run.then(BackupRun::default),
                ..BackupStatus::default()
            };
            let step = decide(&spec(interval, false), &status, Timestamp::UNIX_EPOCH);
            prop_assert!(!matches!(step, Step::Commit(_)));
        }
    }

    #[test]
    fn backup_taken_once_is_taken_once() {
        let mut status = BackupStatus::default();
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(decide(&spec(None, false), &status, now), Step::Plan);
        assert_eq!(decide(&spec(None, true), &status, now), Step::Suspended);
        status.last = Some(LastBackup::default());
        status.phase = phase::SUCCEEDED.to_owned();
        assert_eq!(decide(&spec(None, false), &status, now), Step::Rest);
        assert_eq!(decide(&spec(Some(0), false), &status, now), Step::Rest);
        assert_eq!(decide(&spec(Some(5), false), &status, now), Step::Plan);
    }
}
