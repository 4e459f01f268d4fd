//! Validating admission: webhooks all at once, each of which may say no.

use futures::future::join_all;
use serde_json::Value;

use super::attributes::Attributes;
use super::concern::concerned;
use super::configuration::Hook;
use super::conversion;
use super::matching;
use super::review::{self, Outcome};
use crate::registry::resource::Resource;
use crate::status::Result;

/// Asks every webhook that is concerned whether the object may be stored as it is.
pub(crate) async fn validate(attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
    if matching::is_exempt(attributes.resource) {
        return Ok(());
    }
    let server = attributes.server;
    let hooks = server.hooks_configured().validating(server.store());
    let mut asked = Vec::new();
    for hook in &hooks {
        if let Some(resource) = concerned(hook, attributes, object).await? {
            asked.push((hook, resource));
        }
    }
    let asked = asked
        .iter()
        .map(|(hook, resource)| call(hook, attributes, resource, object));
    // All are heard, so that every warning is passed on; of several refusals the first is told.
    join_all(asked).await.into_iter().collect()
}

async fn call(
    hook: &Hook,
    attributes: &Attributes<'_>,
    resource: &Resource,
    object: Option<&Value>,
) -> Result<()> {
    let versioned = conversion::both(attributes, resource, object).await?;
    let (object, old) = (versioned.object, versioned.old);
    match review::ask(
        hook,
        attributes,
        resource,
        object.as_deref(),
        old.as_deref(),
        false,
    )
    .await
    {
        Outcome::Allowed { .. } => Ok(()),
        Outcome::Denied(error) => Err(error),
        Outcome::Failed(why) if hook.ignore_failure => {
            tracing::warn!(webhook = hook.name, why, "webhook failed and is ignored");
            Ok(())
        }
        Outcome::Failed(why) => Err(review::failure(hook, &why)),
    }
}
