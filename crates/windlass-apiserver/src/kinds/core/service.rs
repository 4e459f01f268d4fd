//! `Service`, which is given addresses and ports.

pub(crate) mod allocation;

use serde_json::Value;

use crate::admission::quota::Measured;
use crate::bootstrap;
use crate::defaults;
use crate::kinds::{Order, Strategy};
use crate::metadata::Checks;
use crate::names;
use crate::resource::Resource;
use crate::server::ApiServer;
use crate::store::Stored;
use crate::validation::at::Causes;
use crate::validation::service;
use crate::verbs::delete::forget_endpoints;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Service;

impl Strategy for Service {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        service::check(object, None, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        service::check_update(new, old, causes);
    }

    fn check_status(&self, new: &Value, old: &Value, causes: &mut Causes) {
        service::check_status(new, old, causes);
    }

    fn update_order(&self) -> Order {
        Order::First
    }

    fn name_errors(&self, name: &str) -> Vec<String> {
        names::label_errors(name)
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_WHOLE
    }

    fn is_created_by_update(&self) -> bool {
        true
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn measured(&self) -> Option<Measured> {
        Some(Measured::Service)
    }

    fn is_given_addresses(&self) -> bool {
        true
    }

    fn after_defaults(&self, object: &mut Value) {
        defaults::load_balancer_mode(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        allocation::drop_dependent(new, old);
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        service::warnings(&object["spec"])
    }

    fn storage_prefix(&self, _: &Resource) -> String {
        "services/specs".to_owned()
    }

    fn after_write(&self, server: &ApiServer, _: &Resource, stored: &Stored, deleted: bool) {
        if deleted {
            allocation::release(server, &stored.value());
            forget_endpoints(server, &stored.key);
        }
    }

    fn at_start_up(&self, server: &ApiServer, object: &mut Value) {
        bootstrap::set_address(server, object);
    }
}
