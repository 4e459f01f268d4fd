//! Which run of a CronJob is due.
//!
//! Of the runs since the last one only the most recent counts: missed ones are not made up for.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::CronJob;

use super::schedule::Schedule;

/// A look is taken a moment after a run is due, so that it is.
const MOMENT: SignedDuration = SignedDuration::from_millis(100);
/// More missed runs than this are told of.
const MANY: i64 = 100;

/// What there is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The most recent run that was due.
    pub run: Option<Timestamp>,
    /// Whether suspiciously many runs were missed.
    pub missed_many: bool,
    since: Timestamp,
    missed: bool,
}

fn spec_deadline(cron: &CronJob) -> Option<SignedDuration> {
    let seconds = cron.spec.starting_deadline_seconds?;
    Some(SignedDuration::from_secs(seconds))
}

fn last_run(cron: &CronJob) -> Option<Timestamp> {
    Some(cron.status.as_ref()?.last_schedule_time.as_ref()?.0)
}

/// The most recent run that was due by now; with the starting deadline, if asked.
pub(crate) fn due(cron: &CronJob, schedule: &Schedule, now: Timestamp, with_deadline: bool) -> Due {
    let created = cron.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let mut since = last_run(cron).or(created).unwrap_or(now);
    if let Some(deadline) = spec_deadline(cron).filter(|_| with_deadline)
        && let Ok(earliest) = now.checked_sub(deadline)
    {
        since = since.max(earliest);
    }
    let nothing = Due {
        run: None,
        missed_many: false,
        since,
        missed: false,
    };
    let Some(first) = schedule.next(since).filter(|first| *first <= now) else {
        return nothing;
    };
    let Some(second) = schedule.next(first).filter(|second| *second <= now) else {
        return Due {
            run: Some(first),
            ..nothing
        };
    };
    // A guess at how many there were lets us begin near the last one.
    let apart = second.duration_since(first).as_secs().max(1);
    let count = now.duration_since(first).as_secs() / apart + 1;
    let near = SignedDuration::from_secs((count - 2) * apart);
    let mut at = first.checked_add(near).unwrap_or(first);
    let mut run = None;
    while let Some(next) = schedule.next(at).filter(|next| *next <= now) {
        run = Some(next);
        at = next;
    }
    Due {
        run,
        missed_many: count > MANY,
        since,
        missed: true,
    }
}

/// When to look again.
pub(crate) fn look_again(cron: &CronJob, schedule: &Schedule, now: Timestamp) -> Option<Timestamp> {
    let due = due(cron, schedule, now, false);
    let from = due.run.unwrap_or(if due.missed { now } else { due.since });
    schedule.next(from)?.checked_add(MOMENT).ok()
}

/// Whether the run may not start any more.
pub(crate) fn is_too_late(cron: &CronJob, run: Timestamp, now: Timestamp) -> bool {
    let last = spec_deadline(cron).and_then(|deadline| run.checked_add(deadline).ok());
    last.is_some_and(|last| last < now)
}

/// Whether the run is the last one that was started.
pub(crate) fn is_done(cron: &CronJob, run: Timestamp) -> bool {
    last_run(cron) == Some(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;
    use serde_json::{Value, json};

    fn cron(deadline: Value, last: Value) -> CronJob {
        serde_json::from_value(json!({
            "metadata": {"creationTimestamp": "2030-01-01T00:00:30Z"},
            "spec": {
                "schedule": "", "jobTemplate": {}, "startingDeadlineSeconds": deadline,
            },
            "status": {"lastScheduleTime": last},
        }))
        .unwrap()
    }

    fn at(text: &str) -> Timestamp {
        format!("2030-01-01T{text}Z").parse().unwrap()
    }

    fn every_minute() -> Schedule {
        Schedule::parse("* * * * *", TimeZone::UTC).unwrap()
    }

    #[test]
    fn only_the_most_recent_run_is_due() {
        let new = cron(Value::Null, Value::Null);
        let run = |now: &str| due(&new, &every_minute(), at(now), true).run;
        assert_eq!(run("00:00:59"), None);
        assert_eq!(run("00:01:00"), Some(at("00:01:00")));
        assert_eq!(run("00:07:30"), Some(at("00:07:00")));
        let many = due(&new, &every_minute(), at("01:50:00"), true);
        assert_eq!((many.run, many.missed_many), (Some(at("01:50:00")), true));
        let before = cron(Value::Null, json!("2030-01-01T00:07:00Z"));
        assert_eq!(
            due(&before, &every_minute(), at("00:07:30"), true).run,
            None
        );
        assert_eq!(
            look_again(&before, &every_minute(), at("00:07:30")),
            Some(at("00:08:00.1"))
        );
        assert_eq!(
            look_again(&new, &every_minute(), at("00:00:40")),
            Some(at("00:01:00.1"))
        );
    }

    #[test]
    fn a_deadline_lets_old_runs_go() {
        let strict = cron(json!(10), Value::Null);
        assert_eq!(
            due(&strict, &every_minute(), at("00:07:05"), true).run,
            Some(at("00:07:00"))
        );
        assert_eq!(
            due(&strict, &every_minute(), at("00:07:30"), true).run,
            None
        );
        assert!(is_too_late(&strict, at("00:07:00"), at("00:07:11")));
        assert!(!is_too_late(&strict, at("00:07:00"), at("00:07:10")));
    }

    /// Lives through a year as the controller does: looks when it was told to, starts what is due.
    fn year(schedule: &str, zone: &str) -> Vec<Timestamp> {
        let schedule = Schedule::parse(schedule, TimeZone::get(zone).unwrap()).unwrap();
        let mut cron = cron(Value::Null, Value::Null);
        let end: Timestamp = "2031-01-01T00:00:00Z".parse().unwrap();
        let mut now = at("00:00:30");
        let mut runs = Vec::new();
        while now < end {
            if let Some(run) = due(&cron, &schedule, now, true).run {
                assert!(!is_done(&cron, run), "{run} twice");
                runs.push(run);
                cron.status.get_or_insert_default().last_schedule_time =
                    Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(run));
            }
            let next = look_again(&cron, &schedule, now).unwrap();
            assert!(next > now, "{next} after {now}");
            now = next;
        }
        runs
    }

    #[test]
    fn a_year_has_every_run_once() {
        assert_eq!(year("@hourly", "UTC").len(), 365 * 24 - 1);
        assert_eq!(year("*/15 9-16 * * mon-fri", "UTC").len(), 261 * 32);
        assert_eq!(year("0 0 1 * *", "UTC").len(), 11);
        assert_eq!(year("0 12 31 * *", "UTC").len(), 7);
        assert_eq!(year("@every 1h30m", "UTC").len(), 5839);
    }

    #[test]
    fn a_year_in_a_time_zone_skips_one_night_and_doubles_another() {
        let runs = year("30 2 * * *", "Europe/Berlin");
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let on = |month: i8, day: i8| {
            let local = |run: &&Timestamp| {
                let local = run.to_zoned(zone.clone());
                assert_eq!((local.hour(), local.minute()), (2, 30));
                (local.month(), local.day()) == (month, day)
            };
            runs.iter().filter(local).count()
        };
        assert_eq!(runs.len(), 365);
        assert_eq!([on(3, 30), on(3, 31), on(4, 1)], [1, 0, 1]);
        assert_eq!([on(10, 26), on(10, 27), on(10, 28)], [1, 2, 1]);
    }
}
