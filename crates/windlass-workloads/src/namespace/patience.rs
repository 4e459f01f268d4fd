//! How long to wait for the content of a namespace that is going.
//!
//! Shortly at first, because most content goes at once, and longer and longer while nothing
//! changes; anew from the start whenever something does. When nothing has changed for a while, it
//! is somebody else's turn (a finalizer that nobody removes), and the wait no longer counts as work
//! under way.

use std::time::Duration;

use super::content::Remains;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(15);
/// How many waits in vain make it somebody else's turn: about a minute.
const ENOUGH: u32 = 9;

/// What was left at the last look, and how often it has been the same.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    last: Remains,
    unchanged: u32,
}

/// How long to wait, and whether that counts as work under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub delay: Duration,
    pub under_way: bool,
}

impl Patience {
    /// How long to wait now that this is left.
    pub(crate) fn wait(&mut self, remains: Remains) -> Wait {
        if self.last == remains {
            self.unchanged = self.unchanged.saturating_add(1);
        } else {
            self.unchanged = 0;
            self.last = remains;
        }
        let delay = FIRST
            .saturating_mul(1 << self.unchanged.min(10))
            .min(LONGEST);
        Wait {
            delay,
            under_way: self.unchanged < ENOUGH,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(count: usize) -> Remains {
        Remains {
            objects: [("pods".to_owned(), count)].into(),
            ..Remains::default()
        }
    }

    #[test]
    fn waits_longer_while_nothing_changes() {
        let mut patience = Patience::default();
        let delays: Vec<u128> = (0..8)
            .map(|_| patience.wait(pods(2)).delay.as_millis())
            .collect();
        assert_eq!(delays, [250, 500, 1000, 2000, 4000, 8000, 15000, 15000]);
        assert_eq!(patience.wait(pods(1)).delay, FIRST, "something went");
    }

    #[test]
    fn what_never_goes_is_not_waited_for() {
        let mut patience = Patience::default();
        let under_way = (0..20).filter(|_| patience.wait(pods(1)).under_way).count();
        assert_eq!(under_way, 9);
        assert!(patience.wait(pods(0)).under_way);
    }
}
