//! Which step of a restore is next: a pure function of its status and of the cluster.
//!
//! Pending → Verified → Fenced → Seeding → Seeded → Serving → Succeeded. Until the cluster has the
//! incarnation of this restore, nothing has been done to it.

use jiff::{SignedDuration, Timestamp};

use super::kind::{EtcdRestoreSpec, RestoreStatus};
use crate::refusal::line_of;

/// What is looked at of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that hold or not, each by itself"
)]
pub(crate) struct ClusterFacts {
    /// Which incarnation it is.
    pub(crate) incarnation: i64,
    /// The version that is asked for.
    pub(crate) version: String,
    /// Whether it is paused.
    pub(crate) paused: bool,
    /// Whether it has a plan that it has not carried out.
    pub(crate) has_plan: bool,
    /// Whether a majority answers.
    pub(crate) available: bool,
    /// Whether its data is lost.
    pub(crate) lost: bool,
    /// Whether it has begun.
    pub(crate) begun: bool,
    /// Whether its seed is still one of its members.
    pub(crate) seeded: bool,
    /// Whether it is as large as it should be.
    pub(crate) complete: bool,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The backup is read and checked, and what was seen is recorded with a new incarnation.
    Verify,
    /// A cluster is made, with the plan of this restore.
    Create,
    /// The plan is written into the cluster.
    Fence,
    /// The cluster has lost its seed before it had others: a new incarnation is recorded.
    BeginAgain,
    /// The cluster controller is at work.
    Await(&'static str, &'static str),
    /// A member is asked whether it has the backup's revision.
    Confirm,
    /// The volumes from before are deleted.
    CleanUp,
    /// They are deleted at this time.
    KeepUntil(Timestamp),
    /// Someone has to change something first.
    Refuse(String),
    /// All is done.
    Rest,
}

/// The phases, as the status names them.
pub(crate) mod phase {
    pub(crate) const PENDING: &str = "Pending";
    pub(crate) const VERIFIED: &str = "Verified";
    pub(crate) const FENCED: &str = "Fenced";
    pub(crate) const SEEDING: &str = "Seeding";
    pub(crate) const SEEDED: &str = "Seeded";
    pub(crate) const SERVING: &str = "Serving";
    pub(crate) const SUCCEEDED: &str = "Succeeded";
}

/// How long old volumes are kept.
const KEEP: i64 = 86_400;

/// The next step.
pub(crate) fn decide(
    spec: &EtcdRestoreSpec,
    status: &RestoreStatus,
    cluster: Option<&ClusterFacts>,
    now: Timestamp,
) -> Step {
    let name = &spec.etcd_cluster.name;
    if status.succeeded {
        return clean_up(spec, status, now);
    }
    if cluster.is_none() && spec.cluster_spec.is_none() {
        return Step::Refuse(format!(
            "there is no EtcdCluster {name}; create it, or set spec.clusterSpec"
        ));
    }
    let (Some(snapshot), Some(incarnation)) = (&status.snapshot, status.incarnation) else {
        return Step::Verify;
    };
    let version = match (cluster, &spec.cluster_spec) {
        (Some(cluster), _) => cluster.version.as_str(),
        (None, Some(made)) => made.version(),
        (None, None) => "",
    };
    let Some(cluster) = cluster else {
        return older(&snapshot.etcd_version, version).map_or(Step::Create, Step::Refuse);
    };
    if cluster.incarnation > incarnation {
        return Step::Refuse(format!(
            "another EtcdRestore has replaced the data of EtcdCluster {name} since; delete this one"
        ));
    }
    if cluster.incarnation < incarnation {
        if let Some(refusal) = older(&snapshot.etcd_version, version) {
            return Step::Refuse(refusal);
        }
        if cluster.paused {
            return Step::Refuse(format!(
                "EtcdCluster {name} is paused; set its spec.paused to false"
            ));
        }
        if cluster.has_plan {
            return Step::Await(
                phase::FENCED,
                "the members of the old cluster are taken away",
            );
        }
        if cluster.available && !spec.replace_running {
            return Step::Refuse(format!(
                "EtcdCluster {name} serves clients, and what was written after the backup would be lost; set spec.replaceRunning to true, or wait until it does not serve any more"
            ));
        }
        return Step::Fence;
    }
    if cluster.lost {
        return Step::BeginAgain;
    }
    match (cluster.begun, cluster.seeded, cluster.complete) {
        (false, ..) => Step::Await(phase::SEEDING, "the first member fetches the backup"),
        (true, true, _) => Step::Await(phase::SEEDED, "the other members join"),
        (true, false, false) => Step::Await(phase::SERVING, "members are becoming ready"),
        (true, false, true) => Step::Confirm,
    }
}

/// Why a snapshot cannot be restored by this version: it is of a later one.
fn older(snapshot: &str, version: &str) -> Option<String> {
    let (of, by) = (line_of(snapshot)?, line_of(version)?);
    (of > by).then(|| {
        format!(
            "the backup is of etcd {}.{}, which etcd {version} cannot read; set the cluster's spec.version to {}.{} or later",
            of.0, of.1, of.0, of.1
        )
    })
}

fn clean_up(spec: &EtcdRestoreSpec, status: &RestoreStatus, now: Timestamp) -> Step {
    if status.cleaned {
        return Step::Rest;
    }
    let keep = spec.keep_old_data_seconds.unwrap_or(KEEP);
    let done = status.completion_date.as_ref().map_or(now, |time| time.0);
    let until = done.checked_add(SignedDuration::from_secs(keep));
    match until {
        Ok(until) if until > now => Step::KeepUntil(until),
        _ => Step::CleanUp,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::restore::SnapshotFacts;

    fn facts() -> impl Strategy<Value = ClusterFacts> {
        (
            0_i64..4,
            prop::array::uniform7(prop::bool::ANY),
            "3\\.[4-7]\\.[0-9]",
        )
            .prop_map(
                |(
                    incarnation,
                    [paused, has_plan, available, lost, begun, seeded, complete],
                    version,
                )| {
                    ClusterFacts {
                        incarnation,
                        version,
                        paused,
                        has_plan,
                        available,
                        lost,
                        begun,
                        seeded,
                        complete,
                    }
                },
            )
    }

    proptest! {
        /// I3 and I4: success is confirmed by a member of the own incarnation, without a seed, and
        /// volumes go only after it.
        #[test]
        fn nothing_is_deleted_before_success_and_nothing_touched_before_the_backup_is_read(
            cluster in prop::option::of(facts()),
            verified in prop::bool::ANY,
            incarnation in 1_i64..4,
            snapshot_minor in 4_u32..8,
            replace in prop::bool::ANY,
        ) {
            let spec = EtcdRestoreSpec { replace_running: replace, ..EtcdRestoreSpec::default() };
            let snapshot = SnapshotFacts {
                etcd_version: format!("3.{snapshot_minor}.0"),
                ..SnapshotFacts::default()
            };
            let status = RestoreStatus {
                snapshot: verified.then_some(snapshot),
                incarnation: verified.then_some(incarnation),
                ..RestoreStatus::default()
            };
            let step = decide(&spec, &status, cluster.as_ref(), Timestamp::UNIX_EPOCH);
            prop_assert!(!matches!(step, Step::CleanUp | Step::KeepUntil(_) | Step::Rest));
            if matches!(step, Step::Fence | Step::Create | Step::BeginAgain) {
                prop_assert!(verified);
            }
            if step == Step::Fence {
                let cluster = cluster.clone().unwrap();
                prop_assert!(replace || !cluster.available);
                prop_assert!(cluster.incarnation < incarnation);
                prop_assert!(line_of(&cluster.version) >= Some((3, snapshot_minor)));
            }
            if step == Step::Confirm {
                let cluster = cluster.unwrap();
                prop_assert!(cluster.incarnation == incarnation && !cluster.seeded && cluster.begun);
            }
        }
    }

    #[test]
    fn old_volumes_are_kept_for_as_long_as_asked() {
        let spec = EtcdRestoreSpec {
            keep_old_data_seconds: Some(60),
            ..EtcdRestoreSpec::default()
        };
        let mut status = RestoreStatus {
            succeeded: true,
            completion_date: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                Timestamp::UNIX_EPOCH,
            )),
            ..RestoreStatus::default()
        };
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(
            decide(&spec, &status, None, at(59)),
            Step::KeepUntil(at(60))
        );
        assert_eq!(decide(&spec, &status, None, at(60)), Step::CleanUp);
        status.cleaned = true;
        assert_eq!(decide(&spec, &status, None, at(60)), Step::Rest);
    }
}
