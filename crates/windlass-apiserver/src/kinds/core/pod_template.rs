//! `PodTemplate`.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::{Strategy, Way};
use crate::table::cell::containers;
use crate::table::text::{labels, or};
use crate::validation::at::{At, Causes};
use crate::validation::metadata::Checks;
use crate::validation::template;
use crate::validation::warnings::pod as pod_warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct PodTemplate;

impl Strategy for PodTemplate {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        template::check(&At::root(object, "").child("template"), causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_WHOLE
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn pod_template(&self) -> Option<Way> {
        Some(&["template"])
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pod_warnings::of_template(object, &["template"])
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Pod Labels" => or(labels(&object["template"]["metadata"]["labels"]), "<none>").into(),
            "Containers" | "Images" => containers(&object["template"], column),
            _ => return None,
        })
    }
}
