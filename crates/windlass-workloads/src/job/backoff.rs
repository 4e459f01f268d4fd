//! How long a Job waits before it replaces failed pods: ten seconds, doubled with every failure
//! since the last success, ten minutes at most.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::pod;

const FIRST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_mins(10);

/// The failures of a Job since its last success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backoff {
    failures: u32,
    last: Option<Timestamp>,
}

impl Backoff {
    /// With pods that ended since.
    pub(crate) fn after(self, succeeded: &[&Pod], failed: &[&Pod]) -> Self {
        let times = |pods: &[&Pod]| {
            let mut times: Vec<Timestamp> = pods.iter().map(|pod| ended_at(pod)).collect();
            times.sort();
            times
        };
        let failed = times(failed);
        let count = |times: &[Timestamp]| u32::try_from(times.len()).unwrap_or(u32::MAX);
        match times(succeeded).last() {
            None => Self {
                failures: self.failures.saturating_add(count(&failed)),
                last: failed.last().copied().or(self.last),
            },
            Some(success) => {
                let since: Vec<Timestamp> =
                    failed.into_iter().filter(|time| time > success).collect();
                Self {
                    failures: count(&since),
                    last: since.last().copied(),
                }
            }
        }
    }

    /// When pods may be created again.
    pub(crate) fn until(self) -> Option<Timestamp> {
        after(self.failures, self.last?)
    }
}

/// When a pod may follow the last of so many failures.
pub(crate) fn after(failures: u32, last: Timestamp) -> Option<Timestamp> {
    let doublings = failures.checked_sub(1)?;
    let wait = (0..doublings).try_fold(FIRST, |wait, _| {
        let doubled = wait + wait;
        (doubled < LONGEST).then_some(doubled)
    });
    last.checked_add(wait.unwrap_or(LONGEST)).ok()
}

/// When a pod ended, as well as that can be known.
pub(crate) fn ended_at(pod: &Pod) -> Timestamp {
    let status = pod.status.as_ref();
    let ready = pod::condition(pod, "Ready")
        .filter(|ready| ready.status == "False")
        .and_then(|ready| ready.last_transition_time.as_ref());
    let asked_to_go = pod.metadata.deletion_timestamp.as_ref().and_then(|time| {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        time.0.checked_sub(SignedDuration::from_secs(grace)).ok()
    });
    let created = pod.metadata.creation_timestamp.as_ref();
    status
        .and_then(|status| status.container_statuses.as_deref())
        .and_then(last_end)
        .or(ready.map(|time| time.0))
        .or(asked_to_go)
        .or(created.map(|time| time.0))
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// When the last of these containers ended; `None` while one of them has not.
fn last_end(statuses: &[ContainerStatus]) -> Option<Timestamp> {
    let ends: Option<Vec<Timestamp>> = statuses
        .iter()
        .map(|status| {
            let ended = status.state.as_ref()?.terminated.as_ref()?;
            ended.finished_at.as_ref().map(|time| time.0)
        })
        .collect();
    ends?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::{at, pod};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn ended(seconds: i64) -> Pod {
        let mut pod = pod("p");
        pod.metadata.creation_timestamp = Some(Time(at(seconds)));
        pod
    }

    #[test]
    fn waits_double_up_to_ten_minutes() {
        let waits: Vec<i64> = (1..9)
            .map(|failures| after(failures, at(0)).unwrap().as_second())
            .collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(after(0, at(0)), None);
    }

    #[test]
    fn a_success_forgets_the_failures_before_it() {
        let failures = Backoff::default().after(&[], &[&ended(5), &ended(3)]);
        assert_eq!(failures.until(), Some(at(25)));
        assert_eq!(failures.after(&[], &[]), failures);
        let mixed = failures.after(&[&ended(10)], &[&ended(9), &ended(12)]);
        assert_eq!(mixed.until(), Some(at(22)));
        assert_eq!(failures.after(&[&ended(10)], &[]).until(), None);
    }
}
