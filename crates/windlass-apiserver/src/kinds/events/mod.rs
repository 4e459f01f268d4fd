//! The kinds of events.k8s.io.

mod event;
pub(crate) mod form;

use super::Strategy;

/// The strategy of a resource of this group.
pub(super) fn find(plural: &str) -> Option<&'static dyn Strategy> {
    Some(match plural {
        "events" => &event::Event,
        _ => return None,
    })
}
