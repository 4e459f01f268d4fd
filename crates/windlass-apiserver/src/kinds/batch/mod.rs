//! The kinds of batch.

mod cron_job;
mod job;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "cronjobs" => &cron_job::CronJob,
        "jobs" => &job::Job,
        _ => return None,
    })
}
