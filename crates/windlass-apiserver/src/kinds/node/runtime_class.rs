//! `RuntimeClass`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::Strategy;
use crate::kinds::core::pod::validation::check_tolerations;
use crate::names;
use crate::table::text::text;
use crate::validation::at::{At, Causes, immutable_field};
use crate::validation::metadata::Checks;
use crate::validation::resources::{self, Of};
use crate::validation::{internal, label};

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct RuntimeClass;

impl Strategy for RuntimeClass {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        check(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        immutable_field(new, old, "handler", causes);
    }

    fn needs_version(&self) -> bool {
        true
    }

    fn is_created_by_update(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::RUNTIME_CLASS
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Handler" => text(&object["handler"]).into(),
            _ => return None,
        })
    }
}

fn check(class: &Value, causes: &mut Causes) {
    let at = At::root(class, "");
    match at.text("handler") {
        "" => causes.push(at.child("handler").required("")),
        name => at
            .child("handler")
            .complain(names::label_errors(name), causes),
    }
    if at.has("overhead") {
        // Told as the limits that it is checked as.
        let limits = serde_json::json!({"limits": class["overhead"]["podFixed"]});
        let overhead = At::root(&limits, "overhead");
        resources::requirements(&overhead, Of::Container, &BTreeSet::new(), causes);
    }
    let scheduling = at.child("scheduling");
    label::labels(&scheduling.child("nodeSelector"), causes);
    check_tolerations(&scheduling, "tolerations", causes);
    let mut seen = BTreeSet::new();
    for toleration in scheduling.items("tolerations") {
        let key = ["key", "operator", "value", "effect"].map(|field| toleration.text(field));
        if !seen.insert(key) {
            let shown = internal::show(toleration.value, "core.Toleration");
            let mut cause = toleration.duplicate();
            cause.message = format!("Duplicate value: {shown}");
            causes.push(cause);
        }
    }
}
