//! `PersistentVolumeClaim`, which is stored without the phase it reads with.

mod source;
mod stored;
pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::Value;

use crate::admission;
use crate::admission::quota::Measured;
use crate::kinds::{Admission, Form, Strategy, Writing};
use crate::status::Result;
use crate::table::cell::{phase, storage_class, unset};
use crate::table::text::{modes, text};
use crate::validation::at::Causes;
use crate::validation::warnings;

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct PersistentVolumeClaim;

impl Strategy for PersistentVolumeClaim {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        validation::check(object, causes);
    }

    fn check_update(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_update(new, old, causes);
    }

    fn check_status(&self, new: &Value, old: &Value, causes: &mut Causes) {
        validation::check_status(new, old, causes);
    }

    fn has_generation(&self, _: bool) -> bool {
        false
    }

    fn answers_deleted(&self) -> bool {
        true
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        warnings::claim(object)
    }

    fn measured(&self) -> Option<Measured> {
        Some(Measured::Claim)
    }

    fn prepare_create(&self, object: &mut Value, _: &Writing<'_>) -> Vec<String> {
        source::normalise_sources(object, None);
        Vec::new()
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        source::normalise_sources(new, Some(old));
    }

    fn admit(&self, admission: &Admission<'_>, object: &mut Value) -> Result<()> {
        admission::default_storage_class(admission.server.store(), object);
        admission::add_finalizer(object, "kubernetes.io/pvc-protection");
        Ok(())
    }

    fn admit_created(&self, admission: &Admission<'_>, object: &Value) -> Result<()> {
        admission::check_limits(admission, object)
    }

    fn admit_changed(&self, admission: &Admission<'_>, new: &Value, old: &Value) -> Result<()> {
        admission::check_growth(admission, new, old)?;
        admission::check_limits(admission, new)
    }

    fn requested_form(&self) -> Option<Form> {
        Some(stored::read_kept)
    }

    fn is_stored_as_read(&self) -> bool {
        false
    }

    fn keep_new(&self, object: &mut Value) {
        stored::keep_new(object);
    }

    fn cell(&self, object: &Value, column: &str, _: Timestamp) -> Option<Value> {
        let spec = &object["spec"];
        let status = &object["status"];
        let bound = !text(&spec["volumeName"]).is_empty();
        Some(match column {
            "Capacity" | "Access Modes" if !bound => "".into(),
            "Capacity" => text(&status["capacity"]["storage"]).into(),
            "Access Modes" => modes(&status["accessModes"]).into(),
            "Status" => phase(object),
            "Volume" => text(&spec["volumeName"]).into(),
            "StorageClass" => storage_class(object),
            "VolumeAttributesClass" => unset(&spec["volumeAttributesClassName"]),
            "VolumeMode" => unset(&spec["volumeMode"]),
            _ => return None,
        })
    }
}
