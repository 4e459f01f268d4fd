//! What a write of a Service holds on to until it is done: its addresses and ports.

use serde_json::Value;

use super::Call;
use crate::kinds::core::service::allocation::{self as services, Plan, Refusal};
use crate::object::meta;
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::status::{ApiError, Result};

/// Addresses and ports chosen for a Service. Nobody else gets them while it lives; dropped before
/// the write is done, it gives back what it took.
pub(super) struct Reservation<'a> {
    server: &'a ApiServer,
    plan: Plan,
    taken: bool,
    written: bool,
}

impl Reservation<'_> {
    /// The write is done.
    pub(super) fn keep(mut self) {
        self.written = true;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        services::finish(self.server, &self.plan, self.taken, self.written);
    }
}

/// Chooses the addresses and ports of a Service that is about to be written; other kinds have
/// none.
pub(super) fn reserve<'a>(
    call: &Call<'a>,
    object: &mut Value,
    old: Option<&Value>,
    subresource: &str,
) -> Result<Option<Reservation<'a>>> {
    if !call.resource.strategy.is_given_addresses() || !subresource.is_empty() {
        return Ok(None);
    }
    let plan = services::allocate(call.server, object, old, call.dry_run)
        .map_err(|refusal| not_allocated(&call.resource, object, refusal))?;
    Ok(Some(Reservation {
        server: call.server,
        plan,
        taken: false,
        written: false,
    }))
}

/// Makes what was chosen the object's, right before it is written.
pub(super) fn claim(
    call: &Call<'_>,
    reservation: Option<&mut Reservation<'_>>,
    object: &Value,
) -> Result<()> {
    let Some(reservation) = reservation else {
        return Ok(());
    };
    services::take(call.server, object, &reservation.plan)
        .map_err(|refusal| not_allocated(&call.resource, object, refusal))?;
    reservation.taken = true;
    Ok(())
}

fn not_allocated(resource: &Resource, object: &Value, refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::Causes(causes) => {
            let subject = resource.kind_subject();
            ApiError::invalid(subject, meta(object, "name"), &causes)
        }
        Refusal::Error(error) => error,
    }
}
