//! `Event` of events.k8s.io: the same events as those of core, in other words.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::admission::quota::Measured;
use crate::kinds::events::cell;
use crate::kinds::events::form as event;
use crate::kinds::{Form, Strategy};
use crate::names;
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::store::Stored;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Event;

impl Strategy for Event {
    fn check(&self, object: &Value, old: Option<&Value>, causes: &mut Causes) {
        validation::check(object, true, causes);
        if old.is_none() {
            validation::check_newer(object, causes);
        }
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_newer_update(new, old, causes);
    }

    fn name_errors(&self, name: &str) -> Vec<String> {
        names::segment_errors(name)
    }

    fn metadata_checks(&self) -> Checks {
        Checks::NONE
    }

    fn may_have_dependents(&self) -> bool {
        false
    }

    fn measured(&self) -> Option<Measured> {
        None
    }

    fn error_group<'a>(&self, _: &'a str) -> &'a str {
        // Known by the group it is stored in.
        ""
    }

    fn stored_form(&self) -> Option<Form> {
        Some(event::to_core)
    }

    fn requested_form(&self) -> Option<Form> {
        Some(event::from_core)
    }

    fn other_form(&self) -> Option<Form> {
        Some(event::from_core)
    }

    fn stored_field(&self, field: &str) -> String {
        event::stored_field(field)
    }

    fn table_group<'a>(&self, _: &'a str) -> &'a str {
        // Core and events.k8s.io events are one thing seen through two types.
        ""
    }

    fn storage_version<'a>(&self, _: &'a str, version: &'a str) -> (&'a str, &'a str) {
        ("", version)
    }

    fn after_write(&self, server: &ApiServer, resource: &Resource, stored: &Stored, deleted: bool) {
        if !deleted {
            event::expire_later(server, resource, stored);
        }
    }

    fn cell(&self, object: &Value, column: &str, now: Timestamp) -> Option<Value> {
        cell::cell(object, column, now)
    }
}
