//! `RoleBinding`.

use jiff::Timestamp;
use serde_json::Value;

use super::cell;
use super::validation;
use crate::auth::rbac;
use crate::kinds::Strategy;
use crate::names;
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::store::Stored;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct RoleBinding;

impl Strategy for RoleBinding {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_binding(object, true, causes);
    }

    fn name_errors(&self, name: &str) -> Vec<String> {
        names::segment_errors(name)
    }

    fn is_created_by_update(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ALL.whole_first()
    }

    fn after_write(&self, server: &ApiServer, resource: &Resource, stored: &Stored, _: bool) {
        rbac::binding_written(server, &resource.table, &stored.key);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        causes.extend(validation::check_reference(new, old));
    }

    fn binds_roles(&self) -> bool {
        true
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        cell::of_binding(object, column)
    }
}
