//! When the next backup is due.

use jiff::{SignedDuration, Timestamp};

/// When a backup is due that is taken every so many seconds.
///
/// A clock that was set back may have left a time far in the future: no wait is longer than the
/// interval. However many were missed, one is due.
pub(crate) fn due(interval: i64, recorded: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let Some(recorded) = recorded else {
        return now;
    };
    recorded.min(next(interval, now))
}

/// When the one after this is due.
pub(crate) fn next(interval: i64, now: Timestamp) -> Timestamp {
    now.checked_add(SignedDuration::from_secs(interval))
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn first_is_due_at_once_and_none_is_awaited_longer_than_the_interval() {
        assert_eq!(due(60, None, at(1000)), at(1000));
        assert_eq!(due(60, Some(at(1030)), at(1000)), at(1030));
        // The clock was set back by hours.
        assert_eq!(due(60, Some(at(9000)), at(1000)), at(1060));
        // Many were missed: one is due, and the next one an interval later.
        assert!(due(60, Some(at(1000)), at(9000)) <= at(9000));
        assert_eq!(next(60, at(9000)), at(9060));
    }
}
