//! How many may be connected: pods reach the node's port, too, and their silence must cost nothing.
//!
//! Who has not shown a certificate yet is a stranger. Strangers have a limit in time, and each
//! address has a limit of them, so that one pod does not take all places.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What strangers and others may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How long the handshake may take.
    pub(crate) handshake: Duration,
    /// How long a connection may wait for a request, up to the end of its headers.
    pub(crate) headers: Duration,
    /// How many connections there may be.
    pub(crate) connections: usize,
}

impl Default for Limits {
    /// As the API server's, but for the number: this is the smaller part of the process's files.
    fn default() -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self {
            handshake: Duration::from_secs(10),
            headers: Duration::from_secs(90),
            connections: usize::try_from(files / 8).unwrap_or(1024).clamp(64, 1024),
        }
    }
}

/// The places of connections.
#[derive(Debug)]
pub(super) struct Room {
    places: Arc<Semaphore>,
    strangers: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
    /// How many strangers of one address there may be.
    of_one: usize,
}

/// A place for one who has not said yet who it is.
pub(super) struct Stranger {
    strangers: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
    from: IpAddr,
}

impl Room {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            places: Arc::new(Semaphore::new(limits.connections)),
            strangers: Arc::default(),
            of_one: (limits.connections / 4).max(1),
        }
    }

    /// Waits for a place; none when there will never be one.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().acquire_owned().await.ok()
    }

    /// Lets a stranger in; none when there are too many from there.
    pub(super) fn stranger(&self, from: IpAddr) -> Option<Stranger> {
        let mut strangers = self
            .strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let count = strangers.entry(from).or_default();
        if *count >= self.of_one {
            return None;
        }
        *count += 1;
        Some(Stranger {
            strangers: self.strangers.clone(),
            from,
        })
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut strangers = self
            .strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = strangers.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                strangers.remove(&self.from);
            }
        }
    }
}
