//! [`Fate`]: what becomes of a call.

use std::future::Future;
use std::pin::Pin;

use etcd_operator::etcd::Call;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is carried out and answered.
    Answered,
    /// It is carried out, and the answer gets lost.
    AnswerLost,
    /// It gets lost before it arrives; the caller cannot tell.
    CallLost,
    /// It is carried out, and the caller is killed before it hears of it.
    CallerKilled,
}

/// Decides what becomes of calls.
pub(crate) trait Fates: Send + Sync {
    /// What becomes of the call that is made now.
    fn of(&self, call: Call) -> Fate;

    /// Kills the caller; never ready.
    fn kill(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Every call is answered.
pub(crate) struct Fair;

impl Fates for Fair {
    fn of(&self, _: Call) -> Fate {
        Fate::Answered
    }

    fn kill(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }
}
