//! `Ingress`.

pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::Value;

use crate::admission;
use crate::kinds::{Admission, Strategy};
use crate::status::Result;
use crate::table::cell::{balancer, items, none};
use crate::table::text::{or, text, three};
use crate::validation::at::Causes;
use crate::validation::warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Ingress;

impl Strategy for Ingress {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check(object, causes);
    }

    fn check_status(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_status(new, old, causes);
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        warnings::ingress(object)
    }

    fn admit(&self, admission: &Admission<'_>, object: &mut Value) -> Result<()> {
        admission::default_ingress_class(admission.server.store(), object);
        Ok(())
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        Some(match column {
            "Class" => none(&spec["ingressClassName"]),
            "Hosts" => hosts(spec).into(),
            "Address" => balancer(&object["status"]).join(",").into(),
            "Ports" if items(spec, "tls").is_empty() => "80".into(),
            "Ports" => "80, 443".into(),
            _ => return None,
        })
    }
}

fn hosts(spec: &Value) -> String {
    let hosts = items(spec, "rules").iter().map(|rule| text(&rule["host"]));
    let hosts: Vec<String> = hosts.filter(|host| !host.is_empty()).collect();
    or(three(&hosts), "*")
}
