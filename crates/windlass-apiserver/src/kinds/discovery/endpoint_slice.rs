//! `EndpointSlice`.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::{Order, Strategy, Writing, content_changes};
use crate::registry::resource::Resource;
use crate::table::cell::items;
use crate::table::text::{or, text, three};
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;
use crate::validation::{endpoints, warnings};

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct EndpointSlice;

impl Strategy for EndpointSlice {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        endpoints::check_slice(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        endpoints::check_slice_update(new, old, causes);
    }

    fn update_order(&self) -> Order {
        Order::Only
    }

    fn has_generation(&self, _: bool) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_CHANGE
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        warnings::slice(object)
    }

    fn warns_on_update(&self) -> bool {
        false
    }

    fn generation_changes(&self, new: &Value, old: &Value, resource: &Resource) -> bool {
        let labels = |object: &Value| object["metadata"].get("labels").cloned();
        content_changes(new, old, resource) || labels(new) != labels(old)
    }

    fn prepare_create(&self, object: &mut Value, _: &Writing<'_>) -> Vec<String> {
        drop_topology(object);
        Vec::new()
    }

    fn prepare_update(&self, new: &mut Value, _: &Value) {
        drop_topology(new);
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "AddressType" => text(&object["addressType"]).into(),
            "Ports" => ports(object).into(),
            "Endpoints" => addresses(object).into(),
            _ => return None,
        })
    }
}

/// This version has fields for what was said here.
fn drop_topology(slice: &mut Value) {
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten() {
        if let Some(endpoint) = endpoint.as_object_mut() {
            endpoint.remove("deprecatedTopology");
        }
    }
}

fn ports(slice: &Value) -> String {
    let ports = items(slice, "ports")
        .iter()
        .map(|port| match &port["port"] {
            Value::Null => or(text(&port["name"]), "*"),
            number => number.to_string(),
        });
    let ports: Vec<String> = ports.collect();
    or(three(&ports), "<unset>")
}

fn addresses(slice: &Value) -> String {
    let all = items(slice, "endpoints").iter();
    let all: Vec<String> = all
        .flat_map(|one| items(one, "addresses").iter().map(text))
        .collect();
    or(three(&all), "<unset>")
}
