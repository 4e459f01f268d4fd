//! Delete, along its way: what is asked (`options`), whether it holds (`preconditions`), what
//! becomes of the object (`fate`), and whole collections (`collection`).

pub(super) mod collection;
mod endpoints;
mod options;
mod outcome;
pub(super) mod preconditions;

use http::StatusCode;
use serde_json::Value;

use super::Call;
use super::admit::{self, Admitted};
use super::pipeline::commit;
use super::present::{self, Written};
use super::{form, refusal};
use crate::http::Answer;
use crate::status::{self, ApiError, Result};
use crate::store::{Key, WriteError};
use crate::webhook::Operation;
pub(crate) use endpoints::forget_endpoints;
pub(crate) use options::Options;
pub(crate) use outcome::{Deletion, Outcome, mark};

/// How often a delete that lost a race is tried again.
const RACE_RETRIES: usize = 64;

pub(super) async fn run(call: &Call<'_>) -> Result<Answer> {
    let (options, dry_run) = Options::read(call)?;
    let key = call.key();
    warn_of_orphans(call, &options);
    let (written, uid, gone) = one(call, &key, Some(call.name()), &options, dry_run).await?;
    let answers_object = !gone || call.resource.strategy.answers_deleted();
    let code = if !gone && options.orphan_dependents == Some(false) {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    };
    if answers_object {
        return present::written(call, written, code).await;
    }
    Ok(Answer::value(status::success(
        call.resource.subject(),
        call.name(),
        &uid,
    )))
}

/// Who deletes a job and says nothing of its pods may not know that they stay.
fn warn_of_orphans(call: &Call<'_>, options: &Options) {
    let silent = options.propagation.is_none() && options.orphan_dependents.is_none();
    let warning = call.resource.strategy.orphan_warning();
    call.warn(warning.filter(|_| silent).map(str::to_owned));
}

/// Deletes one object, or marks it; tells its uid and whether it is gone.
/// Webhooks are asked about the name the request has, unless they were asked before.
pub(super) async fn one(
    call: &Call<'_>,
    key: &Key,
    asked_name: Option<&str>,
    options: &Options,
    dry_run: bool,
) -> Result<(Written, String, bool)> {
    let (store, resource) = (call.server.store(), &call.resource);
    for _ in 0..RACE_RETRIES {
        let found = store
            .get(&resource.table, key)
            .ok_or_else(|| ApiError::not_found(resource.subject(), key.name()))?;
        preconditions::check(call, &found, options)?;
        resource.strategy.admit_delete(resource, key.name())?;
        let (mut old, uid) = (found.value(), found.uid.to_string());
        if let (Some(to_requested), None) = (
            resource.strategy.requested_form(),
            resource.strategy.stored_form(),
        ) {
            to_requested(&mut old);
        }
        if let Some(name) = asked_name {
            let mut shown = options.clone();
            if resource.strategy.is_namespace() {
                // The deletion of a namespace is always of this very one.
                shown.uid.get_or_insert_with(|| uid.clone());
            }
            admit_delete(call, &old, name, &shown, dry_run).await?;
        }
        let outcome = resource.strategy.delete(&Deletion {
            old: &old,
            options,
            resource,
            clock: call.server.clock(),
        });
        if dry_run {
            let (shown, gone) = match outcome {
                Outcome::Gone => (old, true),
                Outcome::Marked(marked) => (marked, false),
                Outcome::MarkedAndGone(marked) => (marked, true),
                Outcome::Unchanged => (old, false),
            };
            let shown = form::to_requested(call.server, &call.resource, shown).await?;
            return Ok((Written::Value(shown), uid, gone));
        }
        let update = |marked: Value| {
            store.update(
                &resource.table,
                key.clone(),
                found.revision,
                marked,
                &resource.selectable,
            )
        };
        let delete = |revision: u64, last: Value| {
            store.delete(
                &resource.table,
                key.clone(),
                revision,
                last,
                &resource.selectable,
            )
        };
        let (result, gone) = match outcome {
            Outcome::Unchanged => return Ok((Written::Stored(found), uid, false)),
            Outcome::Gone => (delete(found.revision, old), true),
            Outcome::Marked(marked) => (update(marked), false),
            Outcome::MarkedAndGone(marked) => {
                let marked = update(marked);
                let gone = marked.and_then(|marked| delete(marked.revision, marked.value()));
                (gone, true)
            }
        };
        match result {
            Ok(stored) => {
                commit::after_write(call, &stored, gone);
                return Ok((Written::Stored(stored), uid, gone));
            }
            Err(WriteError::Changed) => {}
            Err(error) => return Err(refusal::of_write(call, key.name(), error)),
        }
    }
    Err(ApiError::modified(resource.subject(), key.name()))
}

/// Webhooks have a say in a deletion too, and nothing to change.
async fn admit_delete(
    call: &Call<'_>,
    stored: &Value,
    name: &str,
    options: &Options,
    dry_run: bool,
) -> Result<()> {
    let old = form::to_requested(call.server, &call.resource, stored.clone()).await?;
    let shown = options.shown(dry_run);
    let admitted = Admitted {
        operation: Operation::Delete,
        subresource: "",
        name,
        old: Some(&old),
        options: &shown,
        dry_run,
    };
    admit::mutate(call, &admitted, None).await?;
    admit::judge(call, &admitted, None).await
}
