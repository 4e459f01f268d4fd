//! [`Context`]: what a reconcile knows about itself.

use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Serialize;

use super::session::{Session, encode};
use crate::{
    Event, Key, Result,
    kind::Object,
    testing::{Clock, Environment},
};

/// The reconcile in progress: which object, why, and how to report about it.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::{Event, prelude::*};
/// # async fn example(ctx: &Context<ConfigMap>) -> Result<()> {
/// let key = ctx.key();                                       // namespace and name
/// let owned_by_it = ctx.owner_reference();
/// ctx.event(Event::normal("Resized", "resized to 3"));
/// ctx.set_status(serde_json::json!({ "size": 3 }))?;          // written when the reconcile ends
/// # Ok(())
/// # }
/// ```
pub struct Context<K> {
    pub(crate) session: Session,
    kind: PhantomData<fn() -> K>,
}

impl<K: Object> Context<K> {
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

    /// What triggered this reconcile, as logs show it.
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

    /// Sets the object's status. It is written when the reconcile ends, whether it succeeds, waits
    /// or fails, together with the conditions that follow from that; nothing is sent if nothing
    /// changed. Setting it again replaces it.
    pub fn set_status(&self, status: impl Serialize) -> Result<()> {
        let status = encode(&self.session.controller.kind, &status)?;
        self.session.set_status(status)
    }

    /// Writes the object's status now: for what has to be stored before the next step is taken,
    /// so that a reconcile after a crash knows of it. Nothing is sent if nothing changed.
    pub async fn write_status(&self, status: impl Serialize + Send) -> Result<()> {
        let status = encode(&self.session.controller.kind, &status)?;
        self.session.write_status_now(status).await
    }

    /// Reports an event about the object; best effort, never fails the reconcile.
    pub fn event(&self, event: Event) {
        self.session.event(event);
    }
}
