//! `ServiceCIDR`.

use serde_json::{Value, json};

use crate::kinds::Strategy;
use crate::server::ApiServer;
use crate::validation::at::Causes;
use crate::validation::service_address;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ServiceCIDR;

impl Strategy for ServiceCIDR {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        service_address::check_range(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        service_address::check_range_update(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn at_start_up(&self, server: &ApiServer, object: &mut Value) {
        object["spec"]["cidrs"] = json!([server.service_range().to_string()]);
    }
}
