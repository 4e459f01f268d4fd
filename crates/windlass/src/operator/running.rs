//! [`Running`]: a started operator.

use crate::Result;

/// A started operator. Dropping it ends everything at once, as a crash would; [`Running::stop`]
/// lets the reconciles under way finish.
#[must_use = "dropping a running operator ends it at once"]
pub struct Running {}

impl Running {
    /// Waits until every cache holds the first full list of its kind.
    pub async fn synced(&self) -> Result<()> {
        todo!()
    }

    /// Takes no new work, lets the reconciles under way finish (within 30 s), and ends.
    pub async fn stop(self) {
        todo!()
    }
}
