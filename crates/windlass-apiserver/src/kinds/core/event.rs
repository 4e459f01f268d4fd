//! `Event` of core, the form in which events are stored.

use jiff::Timestamp;
use serde_json::Value;

use crate::admission::quota::Measured;
use crate::kinds::events::cell;
use crate::kinds::events::form as event;
use crate::kinds::events::validation;
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
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check(object, false, causes);
    }

    fn name_errors(&self, name: &str) -> Vec<String> {
        names::segment_errors(name)
    }

    fn metadata_checks(&self) -> Checks {
        Checks::NONE
    }

    fn is_created_by_update(&self) -> bool {
        true
    }

    fn may_have_dependents(&self) -> bool {
        false
    }

    fn measured(&self) -> Option<Measured> {
        None
    }

    fn other_form(&self) -> Option<Form> {
        Some(event::to_core)
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
