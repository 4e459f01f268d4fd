//! Which changes were sent by all handlers, in the order in which they happened.
//!
//! Handlers are not equally fast. Progress is what the slowest has sent: what others sent beyond that
//! is sent again after a restart.

use std::collections::VecDeque;

use tokio::sync::mpsc::UnboundedSender;

use crate::progress::{Progress, Seen};

/// A change on its way: dropped when every handler is done with it.
#[derive(Debug)]
pub(crate) struct Ticket {
    number: u64,
    done: UnboundedSender<u64>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // When nobody listens, the engine has ended.
        let _ = self.done.send(self.number);
    }
}

/// What is known once a change was sent.
#[derive(Debug)]
pub(crate) struct Step {
    /// The kind it is about.
    pub(crate) kind: String,
    /// The object, and its version; none for one that is gone.
    pub(crate) object: Option<(String, Option<Seen>)>,
    /// The version up to which everything was sent then.
    pub(crate) version: Option<String>,
}

/// What progress was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moved {
    No,
    /// Nothing happened up to another version.
    Versions,
    /// Changes were sent.
    Objects,
}

/// The changes that are on their way.
pub(crate) struct Ledger {
    done: UnboundedSender<u64>,
    first: u64,
    steps: VecDeque<(Step, bool)>,
}

impl Ledger {
    pub(crate) fn new(done: UnboundedSender<u64>) -> Self {
        Self {
            done,
            first: 0,
            steps: VecDeque::new(),
        }
    }

    /// Notes a change, and returns what its messages carry.
    pub(crate) fn enter(&mut self, step: Step) -> Ticket {
        let number = self.first + self.steps.len() as u64;
        self.steps.push_back((step, false));
        Ticket {
            number,
            done: self.done.clone(),
        }
    }

    /// Notes that a change was sent; returns what progress that is.
    pub(crate) fn done(&mut self, number: u64, progress: &mut Progress) -> Moved {
        let at = usize::try_from(number - self.first).unwrap_or(usize::MAX);
        if let Some((_, done)) = self.steps.get_mut(at) {
            *done = true;
        }
        let mut moved = Moved::No;
        while let Some((step, _)) = self.steps.pop_front_if(|(_, done)| *done) {
            self.first += 1;
            moved = moved.max(match step.object {
                Some(_) => Moved::Objects,
                None => Moved::Versions,
            });
            let kind = progress.kinds.entry(step.kind).or_default();
            match step.object {
                Some((key, Some(seen))) => drop(kind.objects.insert(key, seen)),
                Some((key, None)) => drop(kind.objects.remove(&key)),
                None => {}
            }
            if let Some(version) = step.version {
                kind.version = version;
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn progress_is_what_everything_before_has_reached() {
        let (done, mut finished) = unbounded_channel();
        let (mut ledger, mut progress) = (Ledger::new(done), Progress::default());
        let mut step = |version: &str| {
            ledger.enter(Step {
                kind: "pods".to_owned(),
                object: Some((version.to_owned(), Some(Seen::default()))),
                version: Some(version.to_owned()),
            })
        };
        let (one, two) = (step("1"), step("2"));
        drop(two);
        let number = finished.try_recv().unwrap();
        let moved = ledger.done(number, &mut progress);
        assert_eq!(moved, Moved::No, "the first is still on its way");
        drop(one);
        let number = finished.try_recv().unwrap();
        assert_eq!(ledger.done(number, &mut progress), Moved::Objects);
        assert_eq!(progress.kinds["pods"].version, "2");
        assert_eq!(progress.kinds["pods"].objects.len(), 2);
    }
}
