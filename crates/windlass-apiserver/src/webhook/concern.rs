//! Whether a webhook is to be asked about a request.

use std::sync::Arc;

use serde_json::Value;

use super::attributes::Attributes;
use super::conditions;
use super::configuration::Hook;
use super::conversion;
use crate::cel::Definitions;
use crate::registry::resource::Resource;
use crate::status::{ApiError, Result};

/// The resource, at the version the webhook asks for, when the request concerns it.
pub(super) async fn concerned(
    hook: &Hook,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<Option<Arc<Resource>>> {
    let Some(resource) = hook.criteria.matched(attributes, object)? else {
        return Ok(None);
    };
    if hook.conditions.is_empty() {
        return Ok(Some(resource));
    }
    let versioned = conversion::both(attributes, &resource, object).await?;
    let (object, old) = (versioned.object, versioned.old);
    let seen = conditions::seen(attributes, &resource, object.as_deref(), old.as_deref());
    match hook.conditions.hold(&seen, &Definitions::new()) {
        Ok(holds) => Ok(holds.then_some(resource)),
        Err(why) if hook.ignore_failure => {
            tracing::warn!(
                webhook = hook.name,
                %why,
                "match conditions fail: not called"
            );
            Ok(None)
        }
        Err(why) => Err(ApiError::forbidden(
            attributes.resource.subject(),
            attributes.name,
            &why.to_string(),
        )),
    }
}
