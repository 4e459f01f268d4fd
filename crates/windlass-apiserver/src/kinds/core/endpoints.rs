//! `Endpoints`, which `EndpointSlices` replace.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::Strategy;
use crate::registry::resource::Resource;
use crate::table::cell::items;
use crate::table::text::{text, three};
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

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Endpoints" => addresses(object).into(),
            _ => return None,
        })
    }
}

fn addresses(endpoints: &Value) -> String {
    let subsets = items(endpoints, "subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = items(subset, "addresses")
            .iter()
            .map(|one| text(&one["ip"]));
        let addresses: Vec<String> = addresses.collect();
        let ports = items(subset, "ports");
        if ports.is_empty() {
            all.extend(addresses);
            continue;
        }
        for port in ports {
            let of_port = addresses.iter().map(|ip| {
                if ip.contains(':') {
                    format!("[{ip}]:{}", port["port"])
                } else {
                    format!("{ip}:{}", port["port"])
                }
            });
            all.extend(of_port);
        }
    }
    three(&all)
}
