//! Reviews, which are questions.

use crate::kinds::Strategy;

/// The strategy of reviews.
#[derive(Debug)]
pub(super) struct Review;

impl Strategy for Review {
    fn is_review(&self) -> bool {
        true
    }
}

/// The strategy of a resource of the groups that have reviews.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    plural.ends_with("reviews").then_some(&Review)
}
