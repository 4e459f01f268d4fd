//! The one place where an object is stored, once everything allows it.

use serde_json::Value;

use super::admit::Admitted;
use super::prepare::Prepared;
use super::{Old, Write};
use crate::apply;
use crate::object::{self, meta};
use crate::status::{ApiError, Result};
use crate::store::{Key, Stored, WriteError};
use crate::verbs::Call;
use crate::verbs::write::{WriteOr, Written};

/// Stores an object, or says what a dry run would have stored.
pub(super) async fn run(write: &Write<'_, '_>, admitted: Admitted<'_>) -> Result<Written, WriteOr> {
    let prepared = admitted.into_prepared();
    match &write.old {
        None => create(write.call, prepared).await,
        Some(old) => update(write.call, old, prepared).await,
    }
}

async fn create(call: &Call<'_>, prepared: Prepared<'_>) -> Result<Written, WriteOr> {
    let Prepared {
        object,
        mut reservation,
        ..
    } = prepared;
    let (store, resource) = (call.server.store(), &call.resource);
    let key = Key::new(meta(&object, "namespace"), meta(&object, "name"));
    if call.dry_run {
        return match store.get(&resource.table, &key) {
            Some(_) => Err(WriteOr::Write(WriteError::Exists)),
            None => Ok(Written::Value(call.as_if_stored(object).await?)),
        };
    }
    if !matches!(meta(&object, "resourceVersion"), "" | "0") {
        return Err(WriteOr::Refused(ApiError::without_reason(
            "resourceVersion should not be set on objects to be created",
        )));
    }
    let mut object = call.to_stored(object).await?;
    resource.strategy.keep_new(&mut object);
    call.claim(reservation.as_mut(), &object)?;
    let stored = store
        .create(&resource.table, key, object, &resource.selectable)
        .map_err(WriteOr::Write)?;
    if let Some(reservation) = reservation {
        reservation.keep();
    }
    call.after_write(&stored, false);
    Ok(Written::Stored(stored))
}

async fn update(
    call: &Call<'_>,
    old: &Old<'_>,
    prepared: Prepared<'_>,
) -> Result<Written, WriteOr> {
    let Prepared {
        object: new,
        mut reservation,
        last,
    } = prepared;
    let (store, resource) = (call.server.store(), &call.resource);
    let (found, old) = (old.found, old.value);
    if apply::equal_but_for_times(&new, old) && call.is_stored_as(&new, found).await? {
        return Ok(Written::Stored(found.clone()));
    }
    let key = found.key.clone();
    if is_finished(&new, old) && !resource.strategy.is_held(&new) {
        if !call.dry_run {
            let gone = call.to_stored(old.clone()).await?;
            let deleted = store
                .delete(
                    &resource.table,
                    key,
                    found.revision,
                    gone,
                    &resource.selectable,
                )
                .map_err(WriteOr::Write)?;
            call.after_write(&deleted, true);
        }
        return Ok(Written::Value(last.unwrap_or(new)));
    }
    if call.dry_run {
        return Ok(Written::Value(call.as_if_stored(new).await?));
    }
    let new = call.to_stored(new).await?;
    call.claim(reservation.as_mut(), &new)?;
    let stored = store
        .update(
            &resource.table,
            key,
            found.revision,
            new,
            &resource.selectable,
        )
        .map_err(WriteOr::Write)?;
    if let Some(reservation) = reservation {
        reservation.keep();
    }
    call.after_write(&stored, false);
    Ok(Written::Stored(stored))
}

/// Whether an object that is going away has nothing left that holds it.
fn is_finished(new: &Value, old: &Value) -> bool {
    object::is_terminating(old)
        && object::finalizers(new).is_empty()
        && old["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or_default()
            == 0
}

impl Call<'_> {
    /// Whether an object is stored as it is now: one from before its definition changed may read as
    /// it does only because of what was filled in or left out.
    async fn is_stored_as(&self, new: &Value, found: &Stored) -> Result<bool> {
        let as_stored = match &self.resource.custom {
            Some(custom) => custom.objects.as_stored,
            None => self.resource.strategy.is_stored_as_read(),
        };
        if as_stored {
            return Ok(true);
        }
        let stored = self.to_stored(new.clone()).await?;
        Ok(apply::equal_but_for_times(&stored, &found.value()))
    }
}
