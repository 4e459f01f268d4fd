//! Who claims devices as an administrator does so in a namespace that is marked for it.

use serde_json::Value;

use crate::kinds::Admission;
use crate::status::{Cause, field};
use crate::store::{Key, TableName};

const MARK: &str = "resource.kubernetes.io/admin-access";

/// What is wrong with a new claim, or a template of some, that asks for such access.
pub(super) fn check(admission: &Admission<'_>, spec: &Value) -> Option<Cause> {
    let requests = spec["devices"]["requests"].as_array()?;
    let asked = requests
        .iter()
        .position(|request| request["exactly"]["adminAccess"] == true)?;
    let (table, key) = (
        TableName::new("", "namespaces"),
        Key::new("", admission.namespace),
    );
    let namespace = admission.server.store().get(&table, &key);
    let is_marked =
        namespace.is_some_and(|namespace| namespace.value()["metadata"]["labels"][MARK] == "true");
    (!is_marked).then(|| {
        field::forbidden(
            format!("spec.devices.requests[{asked}].adminAccess"),
            &format!(
                "admin access to devices requires the `{MARK}: true` label on the containing namespace"
            ),
        )
    })
}
