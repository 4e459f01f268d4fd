//! The one place where an object is stored, once everything allows it.

use std::sync::Arc;

use serde_json::Value;

use super::admit::Admitted;
use super::prepare::Prepared;
use super::{Old, Write};
use crate::apply;
use crate::object::{self, meta, set_meta};
use crate::status::{ApiError, Result};
use crate::store::{Key, Stored, WriteError};
use crate::verbs::ownership::Recorded;
use crate::verbs::present::Written;
use crate::verbs::refusal::WriteOr;
use crate::verbs::reservation;
use crate::verbs::{Call, form};

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
        recorded,
        mut reservation,
        ..
    } = prepared;
    let (store, resource) = (call.server.store(), &call.resource);
    let key = Key::new(meta(&object, "namespace"), meta(&object, "name"));
    if call.dry_run {
        return match store.get(&resource.table, &key) {
            Some(_) => Err(WriteOr::Write(WriteError::Exists)),
            None => Ok(Written::Value(
                form::as_if_stored(call.server, &call.resource, object).await?,
            )),
        };
    }
    if !matches!(meta(&object, "resourceVersion"), "" | "0") {
        return Err(WriteOr::Refused(ApiError::without_reason(
            "resourceVersion should not be set on objects to be created",
        )));
    }
    check_recorded(call, recorded)?;
    let mut object = form::to_stored(call.server, &call.resource, object).await?;
    resource.strategy.keep_new(&mut object);
    reservation::claim(call, reservation.as_mut(), &object)?;
    let create = |object| store.create(&resource.table, key.clone(), object, &resource.selectable);
    let stored = store_by(call, object, create).map_err(WriteOr::Write)?;
    if let Some(reservation) = reservation {
        reservation.keep();
    }
    after_write(call, &stored, false);
    Ok(Written::Stored(stored))
}

async fn update(
    call: &Call<'_>,
    old: &Old<'_>,
    prepared: Prepared<'_>,
) -> Result<Written, WriteOr> {
    let Prepared {
        object: new,
        recorded,
        mut reservation,
        last,
    } = prepared;
    let (store, resource) = (call.server.store(), &call.resource);
    let (found, old) = (old.found, old.value);
    // An apply whose record is too large changes something: what is stored is not.
    let may_be_same = recorded == Recorded::Whole || !call.is_apply();
    if may_be_same
        && apply::equal_but_for_times(&new, old)
        && is_stored_as(call, &new, found).await?
    {
        return Ok(Written::Stored(found.clone()));
    }
    let key = found.key.clone();
    if is_finished(&new, old) && !resource.strategy.is_held(&new) {
        if !call.dry_run {
            let gone = form::to_stored(call.server, &call.resource, old.clone()).await?;
            let deleted = store
                .delete(
                    &resource.table,
                    key,
                    found.revision,
                    gone,
                    &resource.selectable,
                )
                .map_err(WriteOr::Write)?;
            after_write(call, &deleted, true);
        }
        return Ok(Written::Value(last.unwrap_or(new)));
    }
    if call.dry_run {
        return Ok(Written::Value(
            form::as_if_stored(call.server, &call.resource, new).await?,
        ));
    }
    check_recorded(call, recorded)?;
    let new = form::to_stored(call.server, &call.resource, new).await?;
    reservation::claim(call, reservation.as_mut(), &new)?;
    let update = |new| {
        let (table, fields) = (&resource.table, &resource.selectable);
        store.update(table, key.clone(), found.revision, new, fields)
    };
    let stored = store_by(call, new, update).map_err(WriteOr::Write)?;
    if let Some(reservation) = reservation {
        reservation.keep();
    }
    after_write(call, &stored, false);
    Ok(Written::Stored(stored))
}

/// What is applied is not stored without the record of its owners.
fn check_recorded(call: &Call<'_>, recorded: Recorded) -> Result<(), WriteOr> {
    if recorded == Recorded::TooLarge && call.is_apply() {
        return Err(WriteOr::Write(WriteError::TooLarge(Vec::new())));
    }
    Ok(())
}

/// Stores an object. One that is too large with the record of its owners is stored without it,
/// unless it is applied.
fn store_by(
    call: &Call<'_>,
    object: Value,
    write: impl Fn(Value) -> Result<Arc<Stored>, WriteError>,
) -> Result<Arc<Stored>, WriteError> {
    match write(object) {
        Err(WriteError::TooLarge(json)) if !call.is_apply() => {
            let mut object: Value = serde_json::from_slice(&json).map_err(WriteError::Encode)?;
            if object["metadata"]["managedFields"].is_null() {
                return Err(WriteError::TooLarge(json));
            }
            set_meta(&mut object, "managedFields", None);
            write(object)
        }
        written => written,
    }
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

/// Whether an object is stored as it is now: one from before its definition changed may read as
/// it does only because of what was filled in or left out.
async fn is_stored_as(call: &Call<'_>, new: &Value, found: &Stored) -> Result<bool> {
    let as_stored = match &call.resource.custom {
        Some(custom) => custom.objects.as_stored,
        None => call.resource.strategy.is_stored_as_read(),
    };
    if as_stored {
        return Ok(true);
    }
    let stored = form::to_stored(call.server, &call.resource, new.clone()).await?;
    Ok(apply::equal_but_for_times(&stored, &found.value()))
}

/// What follows from a write: CRDs start and stop being served, roles take effect.
pub(in crate::verbs) fn after_write(call: &Call<'_>, stored: &Stored, deleted: bool) {
    let resource = &call.resource;
    let strategy = resource.strategy;
    strategy.after_write(call.server, resource, stored, deleted);
}
