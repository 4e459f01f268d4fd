//! A server as it was at one moment, to start others from: a test starts many that begin alike.

use crate::auth::rbac;
use crate::server::{ApiServer, Config};
use crate::store::{Contents, Store};

/// What a server held at one moment.
#[derive(Debug)]
pub struct Snapshot {
    contents: Contents,
    policy: rbac::Policy,
}

impl ApiServer {
    /// What the server holds now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            contents: self.store().contents(),
            policy: self.rbac().policy(),
        }
    }

    /// A server in memory that holds what another did: the same objects at the same versions, with
    /// the same uids. From then on they have nothing to do with each other.
    ///
    /// Its addresses of Services must come from the same range. A seed of its own keeps new uids
    /// from being those of objects that the other made.
    pub fn starting_from(config: Config, snapshot: &Snapshot) -> Self {
        let store = Store::holding(&snapshot.contents, config.compaction_interval);
        let server = Self::with_store(config, store, snapshot.policy.clone());
        crate::registry::custom::restore(&server);
        server
    }
}
