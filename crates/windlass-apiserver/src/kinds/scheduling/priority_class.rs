//! `PriorityClass`.

use jiff::Timestamp;
use serde_json::Value;

use crate::admission;
use crate::kinds::{Admission, Strategy};
use crate::registry::resource::Resource;
use crate::status::Result;
use crate::table::cell::{number, truth};
use crate::table::text::text;
use crate::validation::at::{At, Causes};
use crate::validation::metadata::Checks;

/// The highest priority that users may ask for.
const MAX_PRIORITY: i64 = 1_000_000_000;
/// The classes every cluster has, and what they are worth.
pub(crate) const SYSTEM_PRIORITIES: &[(&str, i64)] = &[
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct PriorityClass;

impl Strategy for PriorityClass {
    fn check(&self, object: &Value, old: Option<&Value>, causes: &mut Causes) {
        if old.is_none() {
            check(object, causes);
        }
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        check_update(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::WITHOUT_WHOLE
    }

    fn generation_changes(&self, _: &Value, _: &Value, _: &Resource) -> bool {
        // What of a class may change asks for nothing new.
        false
    }

    fn admit_created(&self, admission: &Admission<'_>, object: &Value) -> Result<()> {
        admission::check_default_priority(admission, object, true)
    }

    fn admit_changed(&self, admission: &Admission<'_>, new: &Value, _: &Value) -> Result<()> {
        admission::check_default_priority(admission, new, false)
    }

    fn admit_delete(&self, resource: &Resource, name: &str) -> Result<()> {
        admission::check_priority_delete(resource, name)
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Value" => number(&object["value"]),
            "Global-Default" => truth(&object["globalDefault"]),
            "PreemptionPolicy" => text(&object["preemptionPolicy"]).into(),
            _ => return None,
        })
    }
}

fn check(class: &Value, causes: &mut Causes) {
    let at = At::root(class, "");
    let metadata = at.child("metadata");
    let name = metadata.text("name");
    let value = at.int("value").unwrap_or_default();
    if name.starts_with("system-") {
        let why = match SYSTEM_PRIORITIES.iter().find(|(known, _)| *known == name) {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, wanted)) if *wanted != value => {
                Some(format!("value of {name} PriorityClass must be {wanted}"))
            }
            Some(_) if at.flag("globalDefault") => Some(format!(
                "globalDefault of {name} PriorityClass must be false"
            )),
            Some(_) => None,
        };
        if let Some(why) = why {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            );
            causes.push(metadata.child("name").forbidden(&why));
        }
    } else if value > MAX_PRIORITY {
        let why = format!("maximum allowed value of a user defined priority is {MAX_PRIORITY}");
        causes.push(at.child("value").forbidden(&why));
    }
    if at.has("preemptionPolicy") {
        at.child("preemptionPolicy")
            .one_of(&["PreemptLowerPriority", "Never"], causes);
    }
}

fn check_update(new: &Value, old: &Value, causes: &mut Causes) {
    let at = At::root(new, "");
    if new["value"] != old["value"] {
        causes.push(
            at.child("value")
                .forbidden("may not be changed in an update."),
        );
    }
    if new["preemptionPolicy"] != old["preemptionPolicy"] {
        causes.push(at.child("preemptionPolicy").invalid("field is immutable"));
    }
}
