//! [`Rate`]: an overall limit on retries, on top of each key's own backoff.
//!
//! A bucket of tokens that fills steadily. When the whole world fails at once, every key backs off
//! on its own, and together they still come no faster than this.

use std::time::Duration;

use tokio::time::Instant;

/// So many a second, after so many at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    pub(crate) every: Duration,
    pub(crate) burst: u32,
}

impl Default for Rate {
    /// Ten a second after a hundred at once.
    fn default() -> Self {
        Self {
            every: Duration::from_millis(100),
            burst: 100,
        }
    }
}

/// How far the tokens have been spent.
#[derive(Default)]
pub(super) struct Bucket {
    /// When the bucket would be empty no more: tokens before now are saved up, up to the burst.
    spent: Option<Instant>,
}

impl Bucket {
    /// Takes a token; answers when it may be used.
    pub(super) fn take(&mut self, rate: Rate, now: Instant) -> Instant {
        let saved = rate.every.saturating_mul(rate.burst);
        let full = now.checked_sub(saved);
        let from = match (self.spent, full) {
            (Some(spent), Some(full)) => spent.max(full),
            (Some(spent), None) => spent,
            (None, Some(full)) => full,
            // The clock has not run long enough to save anything: start with what there is.
            (None, None) => now,
        };
        let at = from + rate.every;
        self.spent = Some(at);
        at.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_then_it_is_steady() {
        let now = Instant::now() + Duration::from_hours(1);
        let rate = Rate {
            every: Duration::from_millis(100),
            burst: 3,
        };
        let mut bucket = Bucket::default();
        let waits: Vec<Duration> = (0..5).map(|_| bucket.take(rate, now) - now).collect();
        assert_eq!(
            waits.iter().map(Duration::as_millis).collect::<Vec<_>>(),
            [0, 0, 0, 100, 200]
        );
        let later = now + Duration::from_mins(1);
        assert_eq!(bucket.take(rate, later), later, "saved up again");
    }
}
