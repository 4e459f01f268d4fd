//! The kinds of events.k8s.io.

pub(crate) mod cell;
mod event;
pub(crate) mod form;
pub(crate) mod validation;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "events" => &event::Event,
        _ => return None,
    })
}
