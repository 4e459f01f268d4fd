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
use crate::{KindInfo, Object, Result};

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

    pub(crate) fn object(&self) -> &Arc<CachedObject> {
        &self.object
    }

    /// The object as its type.
    pub(crate) fn typed<T: Object>(&self, kind: &KindInfo) -> Result<Arc<T>> {
        let known = self.decoded.get().map(Arc::clone);
        if let Some(Ok(typed)) = known.map(Arc::downcast) {
            return Ok(typed);
        }
        let typed: Arc<T> = Arc::new(self.object.decode(kind)?);
        // Whoever reads it as another type decodes for himself.
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
