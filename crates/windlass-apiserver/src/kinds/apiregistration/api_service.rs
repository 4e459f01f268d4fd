//! `APIService`.

use serde_json::{Value, json};

use crate::kinds::{Strategy, Writing};
use crate::resource::Resource;
use crate::validation::api_service;
use crate::validation::at::Causes;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct APIService;

impl Strategy for APIService {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        api_service::check(object, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn needs_version(&self) -> bool {
        true
    }

    fn storage_prefix(&self, resource: &Resource) -> String {
        format!("{}/{}", resource.group, resource.plural)
    }

    fn prepare_create(&self, object: &mut Value, writing: &Writing<'_>) -> Vec<String> {
        if object["spec"].get("service").is_none() {
            object["status"] = json!({"conditions": [{
                "type": "Available",
                "status": "True",
                "lastTransitionTime": writing.clock.now_seconds(),
                "reason": "Local",
                "message": "Local APIServices are always available",
            }]});
        }
        Vec::new()
    }
}
