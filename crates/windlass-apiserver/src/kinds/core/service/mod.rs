//! `Service`, which is given addresses and ports.

pub(crate) mod allocation;
pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::Value;

use crate::admission::quota::Measured;
use crate::defaults;
use crate::kinds::{Order, Strategy};
use crate::names;
use crate::node::Proxied;
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::server::bootstrap;
use crate::store::Stored;
use crate::table::cell::{balancer, items, none};
use crate::table::text::{labels, or, text};
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

use crate::verbs::delete::forget_endpoints;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Service;

impl Strategy for Service {
    fn proxied(&self) -> Option<Proxied> {
        Some(Proxied::Service)
    }

    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check(object, None, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_update(new, old, causes);
    }

    fn check_status(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_status(new, old, causes);
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
        validation::warnings(&object["spec"])
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

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        Some(match column {
            "Type" => text(&spec["type"]).into(),
            "Cluster-IP" => none(&spec["clusterIP"]),
            "External-IP" => external(object).into(),
            "Port(s)" => or(ports(spec), "<none>").into(),
            "Selector" => or(labels(&spec["selector"]), "<none>").into(),
            _ => return None,
        })
    }
}

fn external(service: &Value) -> String {
    let spec = &service["spec"];
    let named = items(spec, "externalIPs").iter().map(text);
    match spec["type"].as_str() {
        Some("ExternalName") => text(&spec["externalName"]),
        Some("LoadBalancer") => {
            let mut all = balancer(&service["status"]);
            all.extend(named);
            or(all.join(","), "<pending>")
        }
        _ => or(named.collect::<Vec<_>>().join(","), "<none>"),
    }
}

fn ports(spec: &Value) -> String {
    let ports = items(spec, "ports").iter();
    ports
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match port["nodePort"].as_i64() {
                Some(node_port) => format!("{}:{node_port}/{protocol}", port["port"]),
                None => format!("{}/{protocol}", port["port"]),
            }
        })
        .collect::<Vec<_>>()
        .join(",")
}
