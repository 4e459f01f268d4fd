//! What changes an object before it is looked at: the record of its owners, admission, webhooks.

use serde_json::Value;

use super::place::Placed;
use super::{Write, version_named};
use crate::admission;
use crate::apply::Managers;
use crate::auth::rbac::escalation;
use crate::object::{meta, set_meta};
use crate::random::SUFFIX_LENGTH;
use crate::status::{ApiError, Result, field};
use crate::verbs::Call;
use crate::verbs::admit::Admitted;

/// How much of `generateName` is used, so that the name stays a label.
const GENERATED_BASE_LENGTH: usize = 63 - SUFFIX_LENGTH;

/// An object that nothing but the server changes from here on.
pub(super) struct Mutated(Value);

impl Mutated {
    pub(super) fn name(&self) -> &str {
        meta(&self.0, "name")
    }

    /// What its name is generated from, if it has none.
    pub(super) fn generated_base(&self) -> Option<String> {
        let base = meta(&self.0, "generateName");
        let generates = self.name().is_empty() && !base.is_empty();
        generates.then(|| base.chars().take(GENERATED_BASE_LENGTH).collect())
    }

    /// The same object with a name.
    pub(super) fn named(&self, name: &str) -> Self {
        let mut object = self.0.clone();
        set_meta(&mut object, "name", Some(name.into()));
        Self(object)
    }

    pub(super) fn into_object(self) -> Value {
        self.0
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
        call.record(&mut object, &call.untouched(), subresource, decided);
        admission::admit(call.server, resource, call.namespace(), &mut object)?;
        let name = meta(&object, "name").to_owned();
        let admitted = Admitted::create(call, &name, &write.options);
        call.mutate(&admitted, Some(&mut object)).await?;
        // What webhooks made of it is no more to be trusted than what the client sent.
        call.place(&mut object)?;
        call.check_escalation(&object, None)?;
        return Ok(Mutated(object));
    };
    call.record(&mut object, old.value, subresource, decided);
    admission::admit_change(resource, subresource, &mut object, old.value);
    if write.is_seen_by_webhooks() {
        let admitted = Admitted::update(call, subresource, old.value, &write.options);
        call.mutate(&admitted, Some(&mut object)).await?;
        call.place(&mut object)?;
        call.check_after_webhooks(&object, old.value, old.found.revision)?;
    }
    call.check_escalation(&object, Some(old.value))?;
    Ok(Mutated(object))
}

impl Write<'_, '_> {
    /// Of two subresources webhooks see the body that was sent, not the object it is about.
    pub(super) fn is_seen_by_webhooks(&self) -> bool {
        !matches!(self.subresource, "scale" | "binding")
    }
}

impl Call<'_> {
    /// Roles may not give more than their writer has.
    fn check_escalation(&self, object: &Value, old: Option<&Value>) -> Result<()> {
        let (resource, namespace) = (&self.resource, self.namespace());
        escalation::check(self.server, self.who, resource, namespace, object, old)
    }

    /// What webhooks may not change of an object: its name and its version.
    fn check_after_webhooks(&self, new: &Value, old: &Value, revision: u64) -> Result<()> {
        let named = version_named(new)?;
        if named.is_some_and(|named| named != revision) {
            return Err(ApiError::modified(self.resource.subject(), self.name()));
        }
        let name = meta(new, "name");
        if name == meta(old, "name") {
            return Ok(());
        }
        let immutable = field::invalid("metadata.name", &name.into(), "field is immutable");
        // It is found by the rules of all kinds, and by those of this one.
        self.refuse(new, &[immutable.clone(), immutable])
    }
}
