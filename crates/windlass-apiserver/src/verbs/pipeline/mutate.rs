//! What changes an object before it is looked at: the record of its owners, admission, webhooks.

use serde_json::Value;

use super::place::{self, Placed};
use super::{Write, version_named};
use crate::admission;
use crate::apply::Managers;
use crate::auth::rbac::escalation;
use crate::object::{meta, set_meta};
use crate::random::SUFFIX_LENGTH;
use crate::status::{ApiError, Result, field};
use crate::verbs::admit::{self, Admitted};
use crate::verbs::ownership::{self, Recorded};
use crate::verbs::{Call, refusal};

/// How much of `generateName` is used, so that the name stays a label.
const GENERATED_BASE_LENGTH: usize = 63 - SUFFIX_LENGTH;

/// An object that nothing but the server changes from here on.
pub(super) struct Mutated {
    object: Value,
    recorded: Recorded,
}

impl Mutated {
    pub(super) fn name(&self) -> &str {
        meta(&self.object, "name")
    }

    /// What its name is generated from, if it has none.
    pub(super) fn generated_base(&self) -> Option<String> {
        let base = meta(&self.object, "generateName");
        let generates = self.name().is_empty() && !base.is_empty();
        generates.then(|| base.chars().take(GENERATED_BASE_LENGTH).collect())
    }

    /// The same object with a name.
    pub(super) fn named(&self, name: &str) -> Self {
        let mut object = self.object.clone();
        set_meta(&mut object, "name", Some(name.into()));
        Self { object, ..*self }
    }

    /// Whether the record of the owners was too large to be kept.
    pub(super) fn recorded(&self) -> Recorded {
        self.recorded
    }

    pub(super) fn into_object(self) -> Value {
        self.object
    }
}

/// Lets everything change the object that may.
pub(super) async fn run(
    write: &Write<'_, '_>,
    placed: Placed,
    decided: Option<Managers>,
) -> Result<Mutated> {
    let (call, subresource) = (write.call, write.subresource);
    let resource = &call.resource;
    let mut object = placed.into_object();
    let Some(old) = &write.old else {
        let recorded = ownership::record(
            call,
            &mut object,
            &ownership::untouched(&call.resource),
            subresource,
            decided,
        );
        admission::admit(call.server, resource, call.namespace(), &mut object)?;
        let name = meta(&object, "name").to_owned();
        let admitted = Admitted::create(call, &name, &write.options);
        admit::mutate(call, &admitted, Some(&mut object)).await?;
        // What webhooks made of it is no more to be trusted than what the client sent.
        place::put(call, &mut object)?;
        check_escalation(call, &object, None)?;
        return Ok(Mutated { object, recorded });
    };
    let recorded = ownership::record(call, &mut object, old.value, subresource, decided);
    admission::admit_change(resource, subresource, &mut object, old.value);
    if write.is_seen_by_webhooks() {
        let admitted = Admitted::update(call, subresource, old.value, &write.options);
        admit::mutate(call, &admitted, Some(&mut object)).await?;
        place::put(call, &mut object)?;
        check_after_webhooks(call, &object, old.value, old.found.revision)?;
    }
    check_escalation(call, &object, Some(old.value))?;
    Ok(Mutated { object, recorded })
}

impl Write<'_, '_> {
    /// Of two subresources webhooks see the body that was sent, not the object it is about.
    pub(super) fn is_seen_by_webhooks(&self) -> bool {
        !matches!(self.subresource, "scale" | "binding")
    }
}

/// Roles may not give more than their writer has.
fn check_escalation(call: &Call<'_>, object: &Value, old: Option<&Value>) -> Result<()> {
    let (resource, namespace) = (&call.resource, call.namespace());
    escalation::check(call.server, call.who, resource, namespace, object, old)
}

/// What webhooks may not change of an object: its name and its version.
fn check_after_webhooks(call: &Call<'_>, new: &Value, old: &Value, revision: u64) -> Result<()> {
    let named = version_named(new)?;
    if named.is_some_and(|named| named != revision) {
        return Err(ApiError::modified(call.resource.subject(), call.name()));
    }
    let name = meta(new, "name");
    if name == meta(old, "name") {
        return Ok(());
    }
    let immutable = field::invalid("metadata.name", &name.into(), "field is immutable");
    // It is found by the rules of all kinds, and by those of this one.
    refusal::invalid(&call.resource, new, &[immutable.clone(), immutable])
}
