//! `Binding`, which is posted and never kept.

use crate::admission::quota::Measured;
use crate::kinds::Strategy;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Binding;

impl Strategy for Binding {
    fn is_only_posted(&self) -> bool {
        true
    }

    fn binds_pods(&self) -> bool {
        true
    }

    fn measured(&self) -> Option<Measured> {
        None
    }
}
