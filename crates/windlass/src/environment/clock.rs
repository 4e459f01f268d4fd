//! Wall time, real or derived from tokio's clock.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};

/// Where wall time comes from. Clones of a virtual clock agree.
#[derive(Clone, Debug, Default)]
pub struct Clock(windlass_apimachinery::Clock);

impl Clock {
    /// The machine's clock.
    pub fn real() -> Self {
        Self::default()
    }

    /// A clock that reads `base` now and moves with tokio's clock from here on, so that pausing
    /// and advancing tokio's time drives it.
    pub fn starting_at(base: Timestamp) -> Self {
        Self(windlass_apimachinery::Clock::starting_at(base))
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.0.now()
    }

    /// The time now, as Kubernetes objects carry it.
    pub fn time(&self) -> Time {
        Time(self.now())
    }

    /// The time now to the microsecond, as events and leases carry it.
    pub fn micro_time(&self) -> MicroTime {
        MicroTime(self.now())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn virtual_time_moves_with_the_tokio_clock() {
        let base: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(base);
        assert_eq!(clock.now(), base);
        tokio::time::advance(Duration::from_hours(24)).await;
        assert_eq!(clock.clone().now().to_string(), "2026-01-02T00:00:00Z");
    }
}
