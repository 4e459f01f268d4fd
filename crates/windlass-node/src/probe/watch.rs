//! Runs the probes of one container for as long as it runs.
//!
//! The startup probe alone until it succeeds, then liveness and readiness side by side.

use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Container, Probe};
use tokio::time::{Instant, MissedTickBehavior};

use super::{Outcome, Schedule, Tally, check};
use crate::handler::Target;
use crate::pod::Health;
use crate::runtime::{Note, Report, Reports, Runtime};

/// What is known of a container before its first probe.
pub(crate) fn at_start(container: &Container) -> Health {
    let started = container.startup_probe.is_none();
    Health {
        started,
        ready: started && container.readiness_probe.is_none(),
        unhealthy: None,
    }
}

/// Probes a container and reports what changes, until it is dropped or has nothing more to say.
pub(crate) async fn watch<R: Runtime>(target: &Target<R>, run: i32, reports: &Reports) {
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

struct Watch<'a, R> {
    target: &'a Target<R>,
    run: i32,
    reports: &'a Reports,
    begun: Instant,
}

impl<R: Runtime> Watch<'_, R> {
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
        let mut unasked = None;
        loop {
            ticks.tick().await;
            let (success, message) = match check(probe, self.target, schedule.timeout).await {
                Outcome::Success => (true, String::new()),
                Outcome::Failure(seen) => (false, format!("{kind} probe failed: {seen}")),
                // Not counted: it says nothing about the container. Told once, not every time.
                Outcome::Error(why) => {
                    if unasked.as_ref() != Some(&why) {
                        let message =
                            format!("{kind} probe errored and resulted in unknown state: {why}");
                        let note = Note::warning("Unhealthy", message);
                        self.reports.report(Report::Note(note));
                        unasked = Some(why);
                    }
                    continue;
                }
            };
            unasked = None;
            if !success && tally.is_news() {
                let note = Note::warning("Unhealthy", message.clone());
                self.reports.report(Report::Note(note));
            }
            match tally.count(success) {
                Some(true) => return Ok(()),
                Some(false) => return Err(message),
                None => {}
            }
        }
    }
}
