//! Who wrote what: the `managedFields` of every write but an apply, which decides its own.

use serde_json::{Value, json};

use super::Call;
use crate::apply::{self, Managers, Writer};
use crate::defaults;
use crate::object::{meta, set_meta};
use crate::registry::resource::Resource;
use crate::registry::types::Type;
use crate::store::MOST_BYTES;

/// Ownership as the object tells it; a client that sends none keeps what there is, and one
/// that writes through a subresource has no say in it.
fn managers_of(object: &Value, old: &Value, subresource: &str) -> Managers {
    if subresource.is_empty() {
        let sent = Managers::read(&object["metadata"]["managedFields"]);
        if !sent.is_empty() {
            return sent;
        }
    }
    Managers::read(&old["metadata"]["managedFields"])
}

/// Records who made a new object.
pub(crate) fn record_new(call: &Call<'_>, object: &mut Value, decided: Option<Managers>) {
    let _ = record(call, object, &untouched(&call.resource), "", decided);
}

/// An object nobody has written to.
pub(super) fn untouched(resource: &Resource) -> Value {
    if resource.is_custom() {
        json!({})
    } else {
        defaults::zero(&resource.ty)
    }
}

/// Records who sent a body that is not stored itself, as webhooks are shown it.
pub(super) fn record_body(
    call: &Call<'_>,
    body: &mut Value,
    type_name: &str,
    api_version: &str,
    subresource: &str,
) {
    let ty = Type::Named(type_name.into());
    let (manager, now) = (call.field_manager(), call.server.clock().now_seconds());
    let writer = Writer {
        manager: &manager,
        api_version,
        subresource,
        now: Some(&now),
    };
    let untouched = defaults::zero(&ty);
    let managers = apply::record_update(&untouched, body, &ty, Managers::default(), &writer, &[]);
    set_meta(body, "managedFields", Some(managers.write()));
}

/// Whether the record of the owners fits into what may be stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Recorded {
    Whole,
    /// It alone is larger than any object may be, and was left out.
    TooLarge,
}

/// Records that `old` (an untouched object for a create) became `object`, before the server
/// puts right what the client may not change.
pub(super) fn record(
    call: &Call<'_>,
    object: &mut Value,
    old: &Value,
    subresource: &str,
    decided: Option<Managers>,
) -> Recorded {
    let managers = match decided {
        Some(managers) => managers,
        // One empty entry is how a client asks for all of it to be forgotten.
        None if object["metadata"]["managedFields"] == json!([{}]) => Managers::default(),
        // An object that nobody was recorded for is recorded from its first apply on.
        None if !meta(old, "uid").is_empty()
            && managers_of(object, old, subresource).is_empty() =>
        {
            Managers::default()
        }
        // What has not the form of its type cannot be divided among owners.
        None if call.resource.is_custom()
            && !(apply::is_typed(object, &call.resource.ty)
                && apply::is_typed(old, &call.resource.ty)) =>
        {
            Managers::default()
        }
        None => {
            let (manager, now) = (call.field_manager(), call.server.clock().now_seconds());
            let api_version = call.resource.api_version();
            let writer = Writer {
                manager: &manager,
                api_version: &api_version,
                subresource,
                now: Some(&now),
            };
            let managers = managers_of(object, old, subresource);
            apply::record_update(
                old,
                object,
                &call.resource.ty,
                managers,
                &writer,
                call.resource
                    .strategy
                    .reset_fields(subresource, call.resource.has_status()),
            )
        }
    };
    // What is stored nowhere may be as large as it is.
    let too_large = !call.dry_run && managers.least_bytes() > MOST_BYTES;
    let written = (!managers.is_empty() && !too_large).then(|| managers.write());
    set_meta(object, "managedFields", written);
    if !call.resource.is_custom() {
        defaults::drop_empties(object, &call.resource.ty);
    }
    if too_large {
        Recorded::TooLarge
    } else {
        Recorded::Whole
    }
}
