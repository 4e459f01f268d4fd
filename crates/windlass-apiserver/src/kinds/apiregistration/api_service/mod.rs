//! `APIService`.

pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Strategy, Writing};
use crate::registry::resource::Resource;
use crate::table::text::text;

use crate::validation::at::Causes;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct APIService;

impl Strategy for APIService {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check(object, causes);
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

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Service" => service(&object["spec"]["service"]).into(),
            "Available" => available(&object["status"]).into(),
            _ => return None,
        })
    }
}

/// What serves it.
fn service(service: &Value) -> String {
    if service.is_null() {
        return "Local".to_owned();
    }
    format!("{}/{}", text(&service["namespace"]), text(&service["name"]))
}

fn available(status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let found = conditions
        .into_iter()
        .find(|one| one["type"] == "Available");
    match found {
        None => "Unknown".to_owned(),
        Some(one) if one["status"] == "True" => "True".to_owned(),
        Some(one) => format!("{} ({})", text(&one["status"]), text(&one["reason"])),
    }
}
