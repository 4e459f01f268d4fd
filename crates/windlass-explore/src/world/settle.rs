//! The wait until a run has nothing left to do.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Unusable, World};
use crate::edge::Released;
use crate::judge::Wrong;
use crate::state::{Mask, State};
use crate::subject::Life;
use crate::trace::Happened;

/// For how long nothing happens in a process whose cluster is as expected.
const EARLY: Duration = Duration::from_millis(150);

/// What a step comes to undisturbed, and the fields that are not compared.
pub(super) type Goal<'a> = Option<(&'a State, &'a Mask, &'a [String])>;

impl World<'_> {
    /// Waits until nothing is left to do. Answers what is wrong, if that does not happen.
    ///
    /// Once the cluster is as expected, real time is not waited for as long as otherwise: nothing more
    /// is due, and a user may go on at any time.
    pub(super) async fn settle(&mut self, goal: Goal<'_>) -> Result<Option<Wrong>, Unusable> {
        let pace = self.base.pace;
        let early = EARLY.min(self.quiet);
        let mut next_look = early;
        let mut limit = Instant::now() + pace.limit;
        // What was seen to be calm, at every tick: on a busy machine a tick can be late.
        let (mut calm, mut silent, mut last) = (Duration::ZERO, Duration::ZERO, Instant::now());
        loop {
            sleep(pace.tick).await;
            if let Some(wrong) = self.tend().await? {
                return Ok(Some(wrong));
            }
            let step = last.elapsed();
            last = Instant::now();
            let passed = step.min(pace.tick * 3);
            let is_busy = self.life.as_mut().is_some_and(Life::is_busy);
            let has_spoken = self.life.is_none() || self.edge.has_spoken();
            let is_silent = self.edge.still_for().is_some_and(|still| still >= step)
                && self.again.is_none()
                && self.ground.is_idle();
            silent = if is_silent {
                silent + passed
            } else {
                Duration::ZERO
            };
            calm = if is_silent && !is_busy {
                calm + passed
            } else {
                Duration::ZERO
            };
            next_look = if calm.is_zero() { early } else { next_look };
            let mut has_arrived = false;
            if has_spoken
                && !pace.is_virtual
                && calm >= next_look
                && let Some((state, mask, ignore)) = goal
            {
                next_look = calm + early;
                has_arrived = state.differences(&self.edge.state(ignore), mask).is_empty();
            }
            // One that goes on asking for the same is never calm; one that never asks is not waited for.
            let is_still = if has_spoken {
                has_arrived || calm >= self.quiet || silent >= self.quiet * 3
            } else {
                silent >= pace.limit / 6
            };
            if is_still {
                match self.edge.settled() {
                    None => {
                        self.longest_gap = self.longest_gap.max(self.edge.longest_gap());
                        return Ok(None);
                    }
                    Some(Released::Watch) => {}
                    Some(Released::Restart) => {
                        self.kill().await;
                        self.start()?;
                    }
                }
                limit = Instant::now() + pace.limit;
                (calm, silent) = (Duration::ZERO, Duration::ZERO);
            }
            if Instant::now() > limit {
                return Ok(Some(self.restless()));
            }
        }
    }

    fn restless(&self) -> Wrong {
        let records = self.edge.records();
        let writes = records
            .iter()
            .rev()
            .filter_map(|record| match &record.happened {
                Happened::Write { request, code, .. } => Some(format!("{request} ({code})")),
                _ => None,
            });
        let last: Vec<String> = writes.take(5).collect();
        let waits = self.ground.activity.describe();
        let why = if last.is_empty() {
            format!("the controllers of the cluster do not settle: {waits:?}")
        } else {
            format!(
                "still writing after {:?}; latest first:\n{}",
                self.base.pace.limit,
                last.join("\n")
            )
        };
        Wrong::Restless(why)
    }
}
