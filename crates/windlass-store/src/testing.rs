//! A store whose writes become durable when a test says so.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::Store;
use crate::journal::{Forgetful, Writer};

/// What makes the writes of a store durable, on a disk that forgets what was not synced.
pub struct Disk(Writer);

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

impl Disk {
    /// An empty store, and the disk it is kept on.
    ///
    /// # Panics
    /// Never: there is nothing on the disk that could not be read.
    pub fn empty() -> (Store, Self) {
        let (store, writer) =
            Store::recover(Arc::new(Forgetful::default())).expect("an empty disk can be read");
        (store, Self(writer))
    }

    /// Makes every write that waits durable.
    pub fn sync(&mut self) {
        self.0.step(Some(Duration::ZERO));
    }
}
