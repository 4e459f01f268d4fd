//! `Endpoints`, which `EndpointSlices` replace.

use serde_json::Value;

use crate::kinds::Strategy;
use crate::resource::Resource;
use crate::validation::at::Causes;
use crate::validation::endpoints;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Endpoints;

impl Strategy for Endpoints {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        endpoints::check(object, causes);
    }

    fn is_created_by_update(&self) -> bool {
        true
    }

    fn request_warning(&self) -> Option<&'static str> {
        Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
    }

    fn storage_prefix(&self, _: &Resource) -> String {
        "services/endpoints".to_owned()
    }
}
