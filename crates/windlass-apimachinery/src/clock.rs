//! Wall time, and how a test replaces it.
//!
//! Everything in the server that waits uses tokio's clock; everything that writes a timestamp
//! asks this [`Clock`]. A virtual clock is a fixed start plus what tokio's clock has counted, so
//! that a paused runtime moves both together.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Where timestamps come from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    virtual_start: Option<(Timestamp, Instant)>,
}

impl Clock {
    /// The machine's own clock.
    pub fn system() -> Self {
        Self::default()
    }

    /// Starts at `start` and moves with tokio's clock. Call it inside the runtime it is meant for.
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            virtual_start: Some((start, Instant::now())),
        }
    }

    /// The present.
    pub fn now(&self) -> Timestamp {
        match self.virtual_start {
            None => Timestamp::now(),
            Some((start, since)) => start.checked_add(since.elapsed()).unwrap_or(Timestamp::MAX),
        }
    }

    /// The present as Kubernetes writes it in `metadata`: whole seconds, UTC.
    pub fn now_seconds(&self) -> String {
        seconds(self.now())
    }

    /// The present plus `later`, in whole seconds.
    pub fn after_seconds(&self, later: Duration) -> String {
        seconds(self.now().checked_add(later).unwrap_or(Timestamp::MAX))
    }
}

/// `2006-01-02T15:04:05Z`, the form of `metav1.Time`.
fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_virtual_clock_moves_with_tokio() {
        let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().unwrap());
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(clock.now_seconds(), "2030-01-01T01:00:00Z");
        assert_eq!(
            clock.after_seconds(Duration::from_secs(30)),
            "2030-01-01T01:00:30Z"
        );
    }
}
