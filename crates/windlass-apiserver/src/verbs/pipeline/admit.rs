//! Whether the cluster allows an object as it is: limits, policies, webhooks, quotas.

use super::Write;
use super::prepare::Prepared;
use super::validate::Valid;
use crate::object::meta;
use crate::status::Result;
use crate::verbs::admit::{self, Admitted as Request};

/// An object that may be stored.
pub(super) struct Admitted<'c>(Prepared<'c>);

impl<'c> Admitted<'c> {
    pub(super) fn into_prepared(self) -> Prepared<'c> {
        self.0
    }
}

/// Refuses an object that the cluster does not allow.
pub(super) async fn run<'c>(write: &Write<'_, 'c>, valid: Valid<'c>) -> Result<Admitted<'c>> {
    let (call, object) = (write.call, valid.object());
    let strategy = call.resource.strategy;
    match write.old() {
        None => {
            strategy.admit_created(&call.admission(), object)?;
            let request = Request::create(call, meta(object, "name"), &write.options);
            admit::judge(call, &request, Some(object)).await?;
        }
        Some(old) => {
            if write.subresource.is_empty() {
                strategy.admit_changed(&call.admission(), object, old)?;
            }
            if write.is_seen_by_webhooks() {
                let request = Request::update(call, write.subresource, old, &write.options);
                admit::judge(call, &request, Some(object)).await?;
            }
        }
    }
    Ok(Admitted(valid.into_prepared()))
}
