//! `Node`.

mod cell;
mod validation;

use jiff::Timestamp;
use serde_json::Value;

use crate::admission;
use crate::kinds::{Admission, Strategy, Way};
use crate::node::Proxied;
use crate::registry::resource::Resource;
use crate::status::Result;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;
use crate::validation::warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Node;

impl Strategy for Node {
    fn proxied(&self) -> Option<Proxied> {
        Some(Proxied::Node)
    }

    fn check(&self, object: &Value, old: Option<&Value>, causes: &mut Causes) {
        validation::check(object, old.is_none(), causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_update(new, old, causes);
    }

    fn check_status(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check(new, false, causes);
        validation::check_update(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ALL.whole_first()
    }

    fn keeps_new_status(&self) -> bool {
        true
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        warnings::node(object)
    }

    fn disabled_fields(&self) -> &'static [Way] {
        &[&["spec", "configSource"], &["status", "config"]]
    }

    fn storage_prefix(&self, _: &Resource) -> String {
        "minions".to_owned()
    }

    fn admit(&self, _: &Admission<'_>, object: &mut Value) -> Result<()> {
        admission::taint_until_ready(object);
        Ok(())
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        cell::cell(object, column)
    }
}
