//! What of the past may still be read.
//!
//! Kubernetes compacts at every interval what was the past one interval earlier. So a snapshot can be
//! read for one interval at least, and for two at most; then lists of it are told that it is gone.
//! Nothing runs for that here: whoever asks brings the time along.

use std::time::Duration;

use tokio::time::Instant;

/// How far the past has been given up.
#[derive(Debug)]
pub(super) struct Compaction {
    interval: Duration,
    /// When the interval began, and the revision then.
    began: Instant,
    revision_then: u64,
    compacted: u64,
}

impl Compaction {
    pub(super) fn every(interval: Duration) -> Self {
        Self {
            interval,
            began: Instant::now(),
            revision_then: 0,
            compacted: 0,
        }
    }

    /// The oldest revision that can be read now, while `revision` is the present one. To be asked
    /// before every write, so that the revision at the end of an interval is known.
    pub(super) fn oldest(&mut self, revision: u64) -> u64 {
        let now = Instant::now();
        let passed = now.duration_since(self.began);
        if passed < self.interval {
            return self.compacted;
        }
        // Nothing was written since the last question, so the present was the same ever since.
        let whole_intervals = passed.as_nanos() / self.interval.as_nanos().max(1);
        self.compacted = if whole_intervals > 1 {
            revision
        } else {
            self.revision_then
        };
        self.revision_then = revision;
        let over = passed.as_nanos() % self.interval.as_nanos().max(1);
        let over = Duration::from_nanos(u64::try_from(over).unwrap_or_default());
        self.began = now.checked_sub(over).unwrap_or(now);
        self.compacted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_past_is_readable_for_one_interval_and_not_for_two() {
        let interval = Duration::from_mins(5);
        let mut compaction = Compaction::every(interval);
        assert_eq!(compaction.oldest(7), 0);
        tokio::time::advance(interval).await;
        assert_eq!(
            compaction.oldest(7),
            0,
            "what was there before the first interval"
        );
        tokio::time::advance(interval / 2).await;
        assert_eq!(compaction.oldest(9), 0);
        tokio::time::advance(interval / 2).await;
        assert_eq!(compaction.oldest(9), 7);
        tokio::time::advance(interval * 3).await;
        assert_eq!(compaction.oldest(12), 12);
    }
}
