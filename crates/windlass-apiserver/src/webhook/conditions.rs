//! `matchConditions`: CEL expressions that must all be true for a webhook to be called.

use serde_json::Value;

use super::attributes::Attributes;
use super::configuration::Hook;
use crate::resource::Resource;

/// Whether every condition holds; an error says why that cannot be told, and refuses the request
/// unless the webhook's failures are to be ignored.
pub(super) fn hold(
    hook: &Hook,
    _attributes: &Attributes<'_>,
    _resource: &Resource,
    _object: Option<&Value>,
) -> Result<bool, String> {
    if hook.ignore_failure {
        return Ok(false);
    }
    let names: Vec<&str> = hook
        .conditions
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    Err(format!(
        "match conditions of webhook {} cannot be evaluated by this version of windlass: {}",
        hook.name,
        names.join(", ")
    ))
}
