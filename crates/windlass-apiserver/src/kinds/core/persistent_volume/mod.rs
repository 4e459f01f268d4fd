//! `PersistentVolume`.

pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::admission;
use crate::clock::Clock;
use crate::kinds::{Admission, Strategy, Writing};
use crate::status::Result;
use crate::table::cell::{phase, storage_class, unset};
use crate::table::text::{modes, text};
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;
use crate::validation::warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct PersistentVolume;

impl Strategy for PersistentVolume {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_update(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn metadata_checks(&self) -> Checks {
        Checks::VOLUME
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        warnings::volume(object)
    }

    fn prepare_create(&self, object: &mut Value, writing: &Writing<'_>) -> Vec<String> {
        let now = writing.clock.now_seconds();
        object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
        Vec::new()
    }

    fn set_times(&self, new: &mut Value, old: &Value, subresource: &str, clock: &Clock) {
        if subresource != "status" {
            return;
        }
        let was = &old["status"];
        if new["status"]["phase"] != was["phase"] {
            new["status"]["lastPhaseTransitionTime"] = clock.now_seconds().into();
        } else if let Some(time) = was.get("lastPhaseTransitionTime") {
            new["status"]["lastPhaseTransitionTime"] = time.clone();
        }
    }

    fn admit(&self, _: &Admission<'_>, object: &mut Value) -> Result<()> {
        admission::add_finalizer(object, "kubernetes.io/pv-protection");
        Ok(())
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        Some(match column {
            "Capacity" => text(&spec["capacity"]["storage"]).into(),
            "Access Modes" => modes(&spec["accessModes"]).into(),
            "Reclaim Policy" => text(&spec["persistentVolumeReclaimPolicy"]).into(),
            "Status" => phase(object),
            "Claim" => claim(&spec["claimRef"]).into(),
            "StorageClass" => storage_class(object),
            "VolumeAttributesClass" => unset(&spec["volumeAttributesClassName"]),
            "Reason" => text(&object["status"]["reason"]).into(),
            "VolumeMode" => unset(&spec["volumeMode"]),
            _ => return None,
        })
    }
}

/// The claim that a reference names.
fn claim(reference: &Value) -> String {
    if reference.is_null() {
        return String::new();
    }
    format!(
        "{}/{}",
        text(&reference["namespace"]),
        text(&reference["name"])
    )
}
