//! Whether an object is what its kind, and the rules of metadata, ask for.

use serde_json::Value;

use super::Write;
use super::prepare::Prepared;
use crate::crd;
use crate::decode;
use crate::kinds::Order;
use crate::object_meta;
use crate::status::{Cause, Result};
use crate::validation::{self, metadata};
use crate::verbs::{Call, form, refusal};

/// An object that is what it should be.
pub(super) struct Valid<'c>(Prepared<'c>);

impl<'c> Valid<'c> {
    pub(super) fn object(&self) -> &Value {
        &self.0.object
    }

    pub(super) fn into_prepared(self) -> Prepared<'c> {
        self.0
    }
}

/// Refuses an object that is not what it should be; the writer is warned of what is discouraged.
pub(super) fn run<'c>(write: &Write<'_, 'c>, mut prepared: Prepared<'c>) -> Result<Valid<'c>> {
    let (call, object) = (write.call, &mut prepared.object);
    let resource = &call.resource;
    match write.old() {
        None => validate(call, object)?,
        Some(old) => refusal::invalid(
            &call.resource,
            object,
            &update_causes(call, object, old, write.subresource),
        )?,
    }
    form::drop_shown_empties(&call.resource, object);
    let strategy = resource.strategy;
    if write.old.is_none() || (write.subresource.is_empty() && strategy.warns_on_update()) {
        call.warn(strategy.warnings(object));
    }
    if resource.is_custom() {
        call.warn(crd::finalizer_warnings(object, write.old()));
        decode::whole_numbers(object);
    }
    Ok(Valid(prepared))
}

/// What is wrong with a new object: by the rules of its kind, or else by those of all.
fn validate(call: &Call<'_>, object: &Value) -> Result<()> {
    let metadata = metadata::create_causes(object, &call.resource);
    let mut kind = kind_causes(call, object, None, "");
    let strategy = call.resource.strategy;
    kind.splice(0..0, strategy.check_there(&call.admission(), object));
    if strategy.metadata_checks().created == metadata::Own::Not {
        refusal::invalid(&call.resource, object, &kind)?;
        return refusal::invalid(&call.resource, object, &metadata);
    }
    refusal::invalid(&call.resource, object, &[metadata, kind].concat())
}

/// What is wrong with an object by the rules of its kind.
fn kind_causes(
    call: &Call<'_>,
    object: &Value,
    old: Option<&Value>,
    subresource: &str,
) -> Vec<Cause> {
    if let Some(custom) = &call.resource.custom {
        let Some(old) = old else {
            return custom.objects.check_create(object);
        };
        let (causes, warnings) = custom.objects.check_update(object, old, subresource);
        call.warn(warnings);
        causes
    } else {
        let strategy = call.resource.strategy;
        call.warn(strategy.early_warnings(object, old));
        form::in_stored_form(&call.resource, object, |object| {
            validation::check(object, old, strategy)
        })
    }
}

/// What is wrong with a change. The metadata is looked at for every kind, and again by the
/// kind's own rules: its causes are told each time, as Kubernetes does.
fn update_causes(call: &Call<'_>, new: &Value, old: &Value, subresource: &str) -> Vec<Cause> {
    let strategy = call.resource.strategy;
    let checks = strategy.metadata_checks();
    let mut causes = object_meta::common_causes(new);
    causes.extend(object_meta::update_causes(new, old));
    let changed = match subresource {
        "" | "scale" => checks.changed,
        _ => checks.status,
    };
    let own_update = metadata::own_update_causes(new, old, changed);
    if checks.whole_times > 0 && matches!(subresource, "" | "scale") {
        for _ in 0..checks.whole_times {
            causes.extend(metadata::own_causes(new, checks.whole));
            if strategy.update_order() != Order::Only {
                causes.extend(kind_causes(call, new, Some(old), subresource));
            }
        }
        causes.extend(own_update);
        causes.extend(validation::check_changed(new, old, strategy));
        return causes;
    }
    causes.extend(own_update);
    if call.resource.is_custom() {
        causes.extend(kind_causes(call, new, Some(old), subresource));
    } else if matches!(subresource, "" | "scale") {
        let own = metadata::own_causes(new, checks.whole);
        let kind_causes = || kind_causes(call, new, Some(old), subresource);
        causes.extend(form::in_stored_form(&call.resource, new, |new| {
            form::in_stored_form(&call.resource, old, |old| {
                validation::check_change(new, old, strategy, own, kind_causes)
            })
        }));
    } else {
        causes.extend(form::in_stored_form(&call.resource, new, |new| {
            form::in_stored_form(&call.resource, old, |old| {
                validation::check_subresource(new, old, strategy, subresource)
            })
        }));
    }
    causes
}
