//! [`Delivered`]: an object on its way to those who look at its change.
//!
//! Indexes, predicates and wirings of many controllers look at the same object; it is decoded for
//! the first of them, and kept decoded until the last has seen it.

use std::{
    any::Any,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use super::CachedObject;
use crate::{
    Result,
    kind::{KindInfo, Object},
};

/// An object, decoded at most once while it is looked at.
pub(crate) struct Delivered {
    object: Arc<CachedObject>,
    decoded: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Delivered {
    pub(crate) fn new(object: Arc<CachedObject>) -> Self {
        Self {
            object,
            decoded: OnceLock::new(),
        }
    }

    /// An object that is decoded already, if it is.
    pub(crate) fn known(
        object: Arc<CachedObject>,
        decoded: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Self {
        let decoded = decoded.map_or_else(OnceLock::new, OnceLock::from);
        Self { object, decoded }
    }

    pub(crate) fn object(&self) -> &Arc<CachedObject> {
        &self.object
    }

    /// The object as the type that was asked for first.
    pub(crate) fn decoded(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.decoded.get().map(Arc::clone)
    }

    /// The object as its type.
    pub(crate) fn typed<T: Object>(&self, kind: &KindInfo) -> Result<Arc<T>> {
        let known = self.decoded.get().map(Arc::clone);
        if let Some(Ok(typed)) = known.map(Arc::downcast) {
            return Ok(typed);
        }
        let typed: Arc<T> = Arc::new(self.object.decode(kind)?);
        // A reader of another type decodes it again.
        let _ = self.decoded.set(typed.clone());
        Ok(typed)
    }
}

impl Deref for Delivered {
    type Target = CachedObject;

    fn deref(&self) -> &CachedObject {
        &self.object
    }
}
