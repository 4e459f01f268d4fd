//! `Ingress`.

use serde_json::Value;

use crate::admission;
use crate::kinds::{Admission, Strategy};
use crate::status::Result;
use crate::validation::at::Causes;
use crate::validation::{ingress, warnings};

/// The strategy of this kind.
#[derive(Debug)]
pub(super) struct Ingress;

impl Strategy for Ingress {
    fn check(&self, object: &Value, _: Option<&Value>, causes: &mut Causes) {
        ingress::check(object, causes);
    }

    fn check_status(&self, new: &Value, old: &Value, causes: &mut Causes) {
        ingress::check_status(new, old, causes);
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        warnings::ingress(object)
    }

    fn admit(&self, admission: &Admission<'_>, object: &mut Value) -> Result<()> {
        admission::default_ingress_class(admission.server.store(), object);
        Ok(())
    }
}
