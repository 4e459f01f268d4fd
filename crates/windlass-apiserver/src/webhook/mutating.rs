//! Mutating admission: webhooks one after the other, each seeing what the others changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::attributes::Attributes;
use super::concern::concerned;
use super::configuration::Hook;
use super::conversion;
use super::matching;
use super::patch;
use super::review::{self, Outcome};
use crate::registry::resource::Resource;
use crate::status::Result;

/// Brings a changed object back into stored form.
pub(crate) type Settle<'a> = &'a (dyn Fn(&mut Value) -> Result<()> + Sync);

/// Lets every webhook that is concerned change the object. `built_in` are the plug-ins of the
/// server, which look at a changed object once more; `settle` fills in defaults after a patch.
pub(crate) async fn mutate(
    attributes: &Attributes<'_>,
    mut object: Option<&mut Value>,
    built_in: Settle<'_>,
    settle: Settle<'_>,
) -> Result<()> {
    if matching::is_exempt(attributes.resource) {
        return Ok(());
    }
    let server = attributes.server;
    let hooks = server.hooks_configured().mutating(server.store());
    if hooks.is_empty() {
        return Ok(());
    }
    let mut round = Round::default();
    let changed = round
        .run(&hooks, attributes, object.as_deref_mut(), settle, false)
        .await?;
    if !changed {
        return Ok(());
    }
    if let Some(object) = object.as_deref_mut() {
        let before = object.clone();
        built_in(object)?;
        if *object != before {
            round.require_all();
        }
    }
    round
        .run(&hooks, attributes, object, settle, true)
        .await
        .map(|_| ())
}

/// Who is to be called again.
#[derive(Default)]
struct Round {
    /// Called already, and wanting to see later changes.
    reinvocable: BTreeSet<String>,
    /// Of those, the ones before a change.
    required: BTreeSet<String>,
}

impl Round {
    fn require_all(&mut self) {
        self.required.append(&mut self.reinvocable);
    }

    /// Calls the webhooks in order; tells whether one changed the object.
    async fn run(
        &mut self,
        hooks: &[Arc<Hook>],
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
        settle: Settle<'_>,
        again: bool,
    ) -> Result<bool> {
        let mut any = false;
        for hook in hooks {
            let Some(resource) = concerned(hook, attributes, object.as_deref()).await? else {
                continue;
            };
            if again && !self.required.contains(&hook.id) {
                continue;
            }
            let changed = call(hook, attributes, &resource, object.as_deref_mut(), settle).await?;
            if changed {
                any = true;
                self.require_all();
            }
            if hook.reinvoke {
                self.reinvocable.insert(hook.id.clone());
            }
        }
        Ok(any)
    }
}

async fn call(
    hook: &Hook,
    attributes: &Attributes<'_>,
    resource: &Arc<Resource>,
    object: Option<&mut Value>,
    settle: Settle<'_>,
) -> Result<bool> {
    let versioned = conversion::both(attributes, resource, object.as_deref()).await?;
    let (shown, old) = (versioned.object, versioned.old);
    let outcome = review::ask(
        hook,
        attributes,
        resource,
        shown.as_deref(),
        old.as_deref(),
        true,
    )
    .await;
    let (patch, patch_type) = match outcome {
        Outcome::Denied(error) => return Err(error),
        Outcome::Failed(why) if hook.ignore_failure => {
            tracing::warn!(webhook = hook.name, why, "webhook failed and is ignored");
            return Ok(false);
        }
        Outcome::Failed(why) => return Err(review::failure(hook, &why)),
        Outcome::Allowed { patch: None, .. } => return Ok(false),
        Outcome::Allowed {
            patch: Some(patch),
            patch_type,
        } => (patch, patch_type),
    };
    let undecodable = |why: patch::ParseError| {
        let why = format!("received undecodable patch in webhook response: {why}");
        if hook.ignore_failure {
            Ok(false)
        } else {
            Err(review::failure(hook, &why))
        }
    };
    let operations = match patch::parse(&patch) {
        Ok(operations) => operations,
        Err(why) => return undecodable(why),
    };
    if operations.is_empty() {
        return Ok(false);
    }
    let shown = shown.map(std::borrow::Cow::into_owned);
    let (Some(object), Some(mut patched)) = (object, shown) else {
        return Err(review::internal(&format!(
            "admission webhook \"{}\" attempted to modify the object, which is not supported for this operation",
            hook.name
        )));
    };
    if patch_type != "JSONPatch" {
        let why = format!("unsupported patch type \"{patch_type}\"");
        return if hook.ignore_failure {
            Ok(false)
        } else {
            Err(review::failure(hook, &why))
        };
    }
    patch::apply(&mut patched, &operations).map_err(|why| review::internal(&why.to_string()))?;
    let mut patched = conversion::back(attributes, resource, patched).await?;
    settle(&mut patched)?;
    let changed = patched != *object;
    *object = patched;
    Ok(changed)
}
