//! Kinds about which the facts say everything.

use crate::kinds::Strategy;

/// The strategy of such a kind.
#[derive(Debug)]
pub(super) struct Plain;

impl Strategy for Plain {}
