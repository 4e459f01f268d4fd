//! What the server says of an object, whatever a client says: its generation, its status, defaults.

use serde_json::Value;

use super::Write;
use super::mutate::Mutated;
use crate::kinds::Writing;
use crate::object::{self, set_meta};
use crate::status::Result;
use crate::system_fields;
use crate::verbs::form::{self, too_much};
use crate::verbs::ownership::Recorded;
use crate::verbs::reservation::{self, Reservation};

/// An object that is complete, and the addresses that were chosen for it.
pub(super) struct Prepared<'c> {
    pub(super) object: Value,
    pub(super) recorded: Recorded,
    pub(super) reservation: Option<Reservation<'c>>,
    /// What the write that ends the object shows: what was sent, which never becomes what is stored.
    pub(super) last: Option<Value>,
}

/// Completes an object.
pub(super) fn run<'c>(write: &Write<'_, 'c>, mutated: Mutated) -> Result<Prepared<'c>> {
    let call = write.call;
    let (server, resource) = (call.server, &call.resource);
    let recorded = mutated.recorded();
    let mut object = mutated.into_object();
    let old = write.old();
    let reservation = reservation::reserve(call, &mut object, old, write.subresource)?;
    match &write.old {
        None => {
            let writing = Writing {
                who: call.who,
                clock: server.clock(),
                random: server.random(),
            };
            call.warn(system_fields::prepare_create(
                &mut object,
                resource,
                &writing,
            ));
            if let Some(custom) = &resource.custom {
                // The status that a client sent is gone, and the default of one comes instead.
                custom
                    .objects
                    .fill_defaults(&mut object)
                    .map_err(too_much)?;
            }
        }
        Some(old) => {
            system_fields::prepare_update(&mut object, old.value, resource, write.subresource);
            let strategy = resource.strategy;
            strategy.set_times(&mut object, old.value, write.subresource, server.clock());
            let revision = old.found.revision.to_string();
            set_meta(&mut object, "resourceVersion", Some(revision.into()));
        }
    }
    form::fill_defaults(&call.resource, &mut object);
    let ends = old.is_some_and(object::is_terminating) && !resource.is_custom();
    let last = ends.then(|| object.clone());
    form::settle(&call.resource, &mut object);
    Ok(Prepared {
        object,
        recorded,
        reservation,
        last,
    })
}
