//! Custom resources: what their definition does not say is the same for all of them.

use serde_json::Value;

use crate::kinds::{Fields, Strategy, content, reset_fields};
use crate::registry::custom;
use crate::registry::resource::Resource;
use crate::registry::types::Type;
use crate::server::ApiServer;
use crate::store::Stored;
use crate::validation::metadata::Checks;

/// The strategy of custom resources.
#[derive(Debug)]
pub(crate) struct Custom;

impl Strategy for Custom {
    fn needs_version(&self) -> bool {
        true
    }

    fn storage_prefix(&self, resource: &Resource) -> String {
        format!("{}/{}", resource.group, resource.plural)
    }

    /// Their schema has the defaults.
    fn fill_defaults(&self, _: &mut Value, _: &Type) {}

    fn status_takes_metadata(&self) -> bool {
        false
    }

    fn reset_fields(&self, subresource: &str, has_status: bool) -> Fields {
        match subresource {
            "status" => &[&["metadata"], &["spec"]],
            _ => reset_fields(subresource, has_status),
        }
    }

    fn has_generation(&self, _: bool) -> bool {
        true
    }

    /// Even another way to write a number is a change.
    fn generation_changes(&self, new: &Value, old: &Value, resource: &Resource) -> bool {
        content(new, resource) != content(old, resource)
    }

    fn metadata_checks(&self) -> Checks {
        Checks::CUSTOM
    }

    fn after_write(&self, server: &ApiServer, resource: &Resource, stored: &Stored, deleted: bool) {
        custom::after_write(server, resource, stored, deleted);
    }
}
