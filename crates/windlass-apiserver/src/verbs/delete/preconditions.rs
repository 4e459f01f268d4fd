//! What must be so for a delete to happen: the uid and the version it names.

use super::Options;
use crate::status::{ApiError, Result};
use crate::store::Stored;
use crate::verbs::Call;

pub(in crate::verbs) fn check(call: &Call<'_>, found: &Stored, options: &Options) -> Result<()> {
    call.note_guard(options.uid.is_some() || options.revision.is_some());
    let refuse = |what: &str, asked: &str, is: &str, why: &str| {
        if call.resource.strategy.checks_preconditions_first() {
            // Asked before the deletion of any object is.
            let detail = format!(
                "Precondition failed: {what} in precondition: {asked}, {what} in object meta: {is}"
            );
            let subject = call.resource.subject();
            return Err(ApiError::conflict(subject, found.key.name(), &detail));
        }
        let detail = format!(
            "the {what} in the precondition ({asked}) does not match the {what} in record ({is}). The object might have been {why}"
        );
        Err(ApiError::conflict(
            call.resource.kind_subject(),
            found.key.name(),
            &detail,
        ))
    };
    if let Some(uid) = options.uid.as_deref().filter(|uid| **uid != *found.uid) {
        return refuse("UID", uid, &found.uid, "deleted and then recreated");
    }
    let revision = found.revision.to_string();
    if let Some(asked) = options
        .revision
        .as_deref()
        .filter(|asked| **asked != revision)
    {
        return refuse("ResourceVersion", asked, &revision, "modified");
    }
    Ok(())
}
