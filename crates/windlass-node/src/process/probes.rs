//! Runs the probes of one container for as long as it runs.

use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Container, Probe};
use tokio::time::{Instant, MissedTickBehavior};

use crate::pod::Health;
use crate::probe::{Outcome, Schedule, Tally, Target, check};
use crate::runtime::{Note, Report, Reports};

/// What is known of a container before its first probe.
pub(super) fn at_start(container: &Container) -> Health {
    let started = container.startup_probe.is_none();
    Health {
        started,
        ready: started && container.readiness_probe.is_none(),
        unhealthy: None,
    }
}

/// Probes a container and reports what changes, until it is dropped or has nothing more to say.
pub(super) async fn watch(target: &Target, run: i32, reports: &Reports) {
    let begun = Instant::now();
    let container = &target.container;
    let watch = Watch {
        target,
        run,
        reports,
        begun,
    };
    if let Some(probe) = &container.startup_probe {
        let passed = watch.until_changed("Startup", probe, &mut None).await;
        if let Err(message) = passed {
            watch.report(Health {
                unhealthy: Some(message),
                ..at_start(container)
            });
            return;
        }
        watch.report(Health {
            started: true,
            ..at_start_of_service(container)
        });
    }
    // Each of the two keeps its own part of the health; the report is the sum.
    let health = Mutex::new(at_start_of_service(container));
    let tell = |change: &dyn Fn(&mut Health)| {
        let mut health = health.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut health);
        watch.report(health.clone());
    };
    futures::join!(
        async {
            if let Some(probe) = &container.liveness_probe {
                let mut tally = None;
                loop {
                    if let Err(message) = watch.until_changed("Liveness", probe, &mut tally).await {
                        tell(&|health| health.unhealthy = Some(message.clone()));
                        break;
                    }
                }
            }
        },
        async {
            if let Some(probe) = &container.readiness_probe {
                let mut tally = None;
                loop {
                    let ready = watch
                        .until_changed("Readiness", probe, &mut tally)
                        .await
                        .is_ok();
                    tell(&|health| health.ready = ready);
                }
            }
        },
    );
}

fn at_start_of_service(container: &Container) -> Health {
    Health {
        started: true,
        ready: container.readiness_probe.is_none(),
        unhealthy: None,
    }
}

struct Watch<'a> {
    target: &'a Target,
    run: i32,
    reports: &'a Reports,
    begun: Instant,
}

impl Watch<'_> {
    fn report(&self, health: Health) {
        let container = self.target.container.name.clone();
        self.reports.report(Report::Probed {
            container,
            run: self.run,
            health,
        });
    }

    /// Runs a probe until its verdict changes, and returns the new one: a failure with its reason.
    async fn until_changed(
        &self,
        kind: &str,
        probe: &Probe,
        state: &mut Option<(Tally, tokio::time::Interval)>,
    ) -> Result<(), String> {
        let schedule = Schedule::of(probe);
        let (tally, ticks) = state.get_or_insert_with(|| {
            let first = self.begun + schedule.initial_delay;
            let mut ticks = tokio::time::interval_at(first, schedule.period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            (Tally::new(&schedule), ticks)
        });
        loop {
            ticks.tick().await;
            let (success, message) = match check(probe, self.target, schedule.timeout).await {
                Outcome::Success => (true, String::new()),
                Outcome::Failure(message) => (false, format!("{kind} probe failed: {message}")),
                Outcome::Unknown(message) => {
                    let note = format!("{kind} probe cannot be run: {message}");
                    self.reports
                        .report(Report::Note(Note::warning("ProbeNotSupported", note)));
                    // It will not be possible later, either.
                    return std::future::pending().await;
                }
            };
            match tally.count(success) {
                Some(true) => return Ok(()),
                Some(false) => {
                    let note = Note::warning("Unhealthy", message.clone());
                    self.reports.report(Report::Note(note));
                    return Err(message);
                }
                None => {}
            }
        }
    }
}
