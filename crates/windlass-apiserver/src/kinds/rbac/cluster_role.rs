//! `ClusterRole`.

use serde_json::Value;

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
pub(super) struct ClusterRole;

impl Strategy for ClusterRole {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check(object, false, causes);
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
        rbac::role_written(server, &resource.table, &stored.key);
    }
}
