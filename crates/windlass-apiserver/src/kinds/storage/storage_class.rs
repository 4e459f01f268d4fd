//! `StorageClass`.

use jiff::Timestamp;
use serde_json::Value;

use super::validation;
use crate::kinds::Strategy;
use crate::object::meta;
use crate::table::cell::truth;
use crate::table::text::text;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct StorageClass;

impl Strategy for StorageClass {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check_class(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_class_update(new, old, causes);
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> Checks {
        Checks::ALL.whole_first()
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        Some(match column {
            "Name" => name(object).into(),
            "Provisioner" => text(&object["provisioner"]).into(),
            "ReclaimPolicy" => text(&object["reclaimPolicy"]).into(),
            "VolumeBindingMode" => text(&object["volumeBindingMode"]).into(),
            "AllowVolumeExpansion" => truth(&object["allowVolumeExpansion"]),
            _ => return None,
        })
    }
}

/// Its name, and whether it is the default.
fn name(class: &Value) -> String {
    let annotations = &class["metadata"]["annotations"];
    let marks = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ];
    let name = meta(class, "name");
    if marks.iter().any(|mark| annotations[*mark] == "true") {
        format!("{name} (default)")
    } else {
        name.to_owned()
    }
}
