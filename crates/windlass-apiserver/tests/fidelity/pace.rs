//! In which second each step was taken: what is written in one second and what in another differs
//! (managers stand in the order of their times), so ours takes each step in the second in which the
//! real server took it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The second of each step.
pub(crate) enum Pace {
    /// As it comes, in the world's time.
    Noted(Mutex<Vec<u64>>),
    /// As it was noted, in virtual time.
    Kept {
        seconds: Vec<u64>,
        began: Mutex<Option<Instant>>,
    },
}

impl Pace {
    pub(crate) fn noted() -> Self {
        Self::Noted(Mutex::new(Vec::new()))
    }

    /// The same pace for another server.
    pub(crate) fn again(self) -> Self {
        let seconds = match self {
            Self::Noted(seconds) => seconds.into_inner().unwrap_or_else(PoisonError::into_inner),
            Self::Kept { seconds, .. } => seconds,
        };
        Self::Kept {
            seconds,
            began: Mutex::new(None),
        }
    }

    /// Notes when a step is taken, or waits until it is to be.
    pub(crate) async fn before(&self, step: usize) {
        match self {
            Self::Noted(seconds) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let mut seconds = seconds.lock().unwrap_or_else(PoisonError::into_inner);
                seconds.push(now.unwrap_or_default().as_secs());
            }
            Self::Kept { seconds, began } => {
                let began = *began
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert_with(Instant::now);
                let later = match (seconds.get(step), seconds.first()) {
                    (Some(second), Some(first)) => second.saturating_sub(*first),
                    _ => return,
                };
                tokio::time::sleep_until(began + Duration::from_secs(later)).await;
            }
        }
    }
}
