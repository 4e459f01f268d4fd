//! [`Context`]: what a reconcile knows about itself.

use std::marker::PhantomData;

use serde::Serialize;

use crate::{Clock, Environment, Event, Key, Kind, Result};

/// The reconcile under way: which object, why, and the way to report about it.
pub struct Context<K> {
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Context<K> {
    /// The key of the object being reconciled.
    pub fn key(&self) -> &Key {
        todo!()
    }

    /// What woke this reconcile, for people.
    pub fn cause(&self) -> &str {
        todo!()
    }

    /// Wall time.
    pub fn clock(&self) -> &Clock {
        todo!()
    }

    /// Clock, randomness and activity.
    pub fn environment(&self) -> &Environment {
        todo!()
    }

    /// Makes the object's status be as given; sends nothing when it is already. Conditions that
    /// the framework derives (Available, Progressing, Degraded) are added to those given.
    pub async fn status(&self, status: impl Serialize + Send) -> Result<()> {
        todo!()
    }

    /// Reports an event about the object; best effort, never fails the reconcile.
    pub fn event(&self, event: Event) {
        todo!()
    }
}
