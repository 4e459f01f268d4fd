//! [`Fates`]: who decides what becomes of a call.

use std::future::Future;
use std::pin::Pin;

use etcd_operator::etcd::Call;
use windlass_cluster::{Fate, Outside};

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

/// The replays of a scenario decide.
pub(crate) struct OfReplay(pub(crate) Outside);

/// Who calls.
const OPERATOR: &str = "etcd-operator";

impl Fates for OfReplay {
    fn of(&self, call: Call) -> Fate {
        self.0.call(OPERATOR, call.to_string(), call.changes())
    }

    fn kill(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.0.kill(OPERATOR))
    }
}
