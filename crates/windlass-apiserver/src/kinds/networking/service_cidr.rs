//! `ServiceCIDR`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::addresses;
use crate::kinds::Strategy;
use crate::server::ApiServer;
use crate::table::text::joined;
use crate::validation::at::Causes;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct ServiceCIDR;

impl Strategy for ServiceCIDR {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        addresses::check_range(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        addresses::check_range_update(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn at_start_up(&self, server: &ApiServer, object: &mut Value) {
        object["spec"]["cidrs"] = json!([server.service_range().to_string()]);
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "CIDRs" => joined(&object["spec"]["cidrs"], ",").into(),
            _ => return None,
        })
    }
}
