//! [`Context`]: what a reconcile knows about itself.

use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Serialize;

use super::session::{Session, encode};
use crate::{Clock, Environment, Event, Key, Kind, Result};

/// The reconcile under way: which object, why, and the way to report about it.
pub struct Context<K> {
    pub(crate) session: Session,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Context<K> {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            session,
            kind: PhantomData,
        }
    }

    /// The key of the object being reconciled.
    pub fn key(&self) -> &Key {
        self.session.key()
    }

    /// What woke this reconcile, for people.
    pub fn cause(&self) -> &str {
        &self.session.cause
    }

    /// Wall time.
    pub fn clock(&self) -> &Clock {
        &self.session.shared.environment.clock
    }

    /// Clock, randomness and activity.
    pub fn environment(&self) -> &Environment {
        &self.session.shared.environment
    }

    /// A reference to the reconciled object that makes it an owner, but not the controller: for an
    /// object with several owners, which goes when the last of them is gone.
    pub fn owner_reference(&self) -> OwnerReference {
        let kind = &self.session.controller.kind;
        OwnerReference {
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
            name: self.key().name().to_owned(),
            uid: self.session.uid.to_string(),
            controller: None,
            block_owner_deletion: None,
        }
    }

    /// Makes the object's status be as given; sends nothing when it is already. Conditions that
    /// the framework derives (Available, Progressing, Degraded) are added to those given, as they
    /// are when the reconcile ends well; before it waits, [`leave_status`](Self::leave_status).
    pub async fn status(&self, status: impl Serialize + Send) -> Result<()> {
        let status = encode(&self.session.controller.kind, &status)?;
        self.session.give_status(status).await
    }

    /// Leaves a status to be written when the reconcile ends, together with the conditions that
    /// follow from how it ends: for a reconcile that is about to wait, or to fail.
    pub fn leave_status(&self, status: impl Serialize) -> Result<()> {
        let status = encode(&self.session.controller.kind, &status)?;
        self.session.check_status()?;
        self.session.suggest_status(status);
        Ok(())
    }

    /// Reports an event about the object; best effort, never fails the reconcile.
    pub fn event(&self, event: Event) {
        self.session.event(event);
    }
}
