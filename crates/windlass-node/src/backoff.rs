//! How long a container waits before it is started again.
//!
//! As kubelet does it: the first restart is immediate, the second waits 10 s after the exit, and
//! each further one twice as long, up to 5 minutes. A container that ran for 10 minutes has proved
//! itself: its next restart is immediate again. Failed image look-ups wait by the same steps, but
//! never retry immediately.

use std::time::Duration;

/// The first wait, doubled by each further failure.
const FIRST: Duration = Duration::from_secs(10);
/// The longest wait.
const LONGEST: Duration = Duration::from_mins(5);
/// The first and the longest wait before a volume is prepared again.
const SOON: Duration = Duration::from_millis(500);
const LONGEST_PREPARATION: Duration = Duration::from_secs(122);
/// Having run for this long, a container starts over without a wait.
const PROVEN: Duration = Duration::from_mins(10);

/// The back-off of one container: how long its next restart waits after the exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backoff {
    exits: u32,
}

impl Backoff {
    /// The back-off of a container that has not ended yet.
    pub const NONE: Self = Self { exits: 0 };

    /// Records an exit after having run for `ran`, and returns how long to wait before the restart.
    pub fn exited(&mut self, ran: Duration) -> Duration {
        if ran >= PROVEN {
            self.exits = 0;
        }
        let wait = step(self.exits);
        self.exits = self.exits.saturating_add(1);
        wait
    }
}

/// How long to wait before look-up number `attempts + 1` of an image, after `attempts` failures.
pub fn retry_after(attempts: u32) -> Duration {
    step(attempts.max(1))
}

/// How long to wait before a volume is prepared again, after `attempts` failures: what is missing
/// often comes soon.
pub fn prepare_after(attempts: u32) -> Duration {
    2_u32
        .checked_pow(attempts.saturating_sub(1))
        .and_then(|factor| SOON.checked_mul(factor))
        .map_or(LONGEST_PREPARATION, |wait| wait.min(LONGEST_PREPARATION))
}

fn step(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        n => 2_u32
            .checked_pow(n - 1)
            .and_then(|factor| FIRST.checked_mul(factor))
            .map_or(LONGEST, |wait| wait.min(LONGEST)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn restarts_at_once_then_doubles_up_to_five_minutes() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..8)
            .map(|_| backoff.exited(Duration::from_secs(1)).as_secs())
            .collect();
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn ten_minutes_of_running_start_over() {
        let mut backoff = Backoff::default();
        for _ in 0..5 {
            backoff.exited(Duration::from_secs(1));
        }
        assert_eq!(backoff.exited(Duration::from_mins(10)), Duration::ZERO);
        assert_eq!(
            backoff.exited(Duration::from_secs(1)),
            Duration::from_secs(10)
        );
    }

    #[test]
    fn a_volume_is_tried_again_soon() {
        let waits: Vec<u128> = (1..12).map(|n| prepare_after(n).as_millis()).collect();
        assert_eq!(waits[..4], [500, 1000, 2000, 4000]);
        assert_eq!(waits[10], 122_000);
    }

    #[test]
    fn an_image_is_never_looked_up_again_at_once() {
        assert_eq!(retry_after(0), Duration::from_secs(10));
        assert_eq!(retry_after(1), Duration::from_secs(10));
        assert_eq!(retry_after(2), Duration::from_secs(20));
    }

    proptest! {
        #[test]
        fn never_waits_longer_than_the_longest(runs in prop::collection::vec(0_u64..1_000, 0..80)) {
            let mut backoff = Backoff::default();
            let mut before = Duration::ZERO;
            for ran in runs {
                let ran = Duration::from_secs(ran);
                let wait = backoff.exited(ran);
                prop_assert!(wait <= LONGEST);
                prop_assert!(wait >= before || ran >= PROVEN);
                before = wait;
            }
        }
    }
}
