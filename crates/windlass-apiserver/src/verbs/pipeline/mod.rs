//! What every write passes on its way to the store, a stage each.
//!
//! | stage | returns | what it does |
//! | --- | --- | --- |
//! | [`place`] | `Placed` | the object is the one that the path names, and nothing that only the server says |
//! | [`mutate`] | `Mutated` | its owners are recorded; admission and webhooks change it; it is placed again; rights that it gives are its writer's to give |
//! | [`prepare`] | `Prepared` | what the server sets is set, addresses are chosen, defaults filled in |
//! | [`validate`] | `Valid` | it is what its kind and the rules of metadata ask for |
//! | [`admit`] | `Admitted` | limits, policies, webhooks and quotas allow it as it is |
//! | [`commit`] | [`Written`] | it is stored, or shown as it would be |
//!
//! Each stage takes what the one before returned, which nothing else makes: none can be left out,
//! and everything that must hold of the stored object is checked after it was mutated. Decoding,
//! which differs by verb, comes before, and the answer after.

mod admit;
pub(super) mod commit;
mod mutate;
pub(crate) mod place;
mod prepare;
mod validate;

use std::sync::Arc;

use serde_json::Value;

use super::present::Written;
use super::refusal::{self, WriteOr};
use super::{Call, form, options};
use crate::apply::Managers;
use crate::object::meta;
use crate::status::{ApiError, Result};
use crate::store::{Stored, WriteError};
use mutate::Mutated;

/// How often a patch that lost a race is tried again.
const RACE_RETRIES: usize = 64;
/// How often a name that is taken is drawn again, the first time counted in.
const GENERATE_TRIES: usize = 8;

/// What an update wants to store.
pub(in crate::verbs) struct Update {
    pub(in crate::verbs) object: Value,
    /// Ownership, when it was decided already (by an apply).
    pub(in crate::verbs) managers: Option<Managers>,
}

/// What is written, and instead of what.
struct Write<'w, 'c> {
    call: &'w Call<'c>,
    subresource: &'w str,
    /// The options of the request as webhooks see them.
    options: Value,
    /// The object that changes; none when one is created.
    old: Option<Old<'w>>,
}

/// The object that changes.
struct Old<'w> {
    found: &'w Arc<Stored>,
    /// In the version that was asked for.
    value: &'w Value,
}

impl Write<'_, '_> {
    fn old(&self) -> Option<&Value> {
        self.old.as_ref().map(|old| old.value)
    }
}

/// Makes a new object of a normalised one.
pub(super) async fn create(
    call: &Call<'_>,
    object: Value,
    decided: Option<Managers>,
) -> Result<Written> {
    create_through(call, "", object, decided).await
}

/// The same by a write to a subresource, which gives out no addresses.
pub(super) async fn create_through(
    call: &Call<'_>,
    subresource: &str,
    object: Value,
    decided: Option<Managers>,
) -> Result<Written> {
    let write = Write {
        call,
        subresource,
        options: options::shown(&call.query, "CreateOptions"),
        old: None,
    };
    let placed = place::run(&write, object)?;
    let mutated = mutate::run(&write, placed, decided).await?;
    let Some(base) = mutated.generated_base() else {
        let name = mutated.name().to_owned();
        let written = finish(&write, mutated).await;
        return written.map_err(|error| refusal(call, &name, error));
    };
    let mut tries = 0;
    loop {
        tries += 1;
        let name = format!("{base}{}", call.server.random().name_suffix());
        match finish(&write, mutated.named(&name)).await {
            Err(WriteOr::Write(WriteError::Exists)) if tries < GENERATE_TRIES => {}
            Err(error) => return Err(refusal(call, &name, error)),
            Ok(written) => return Ok(written),
        }
    }
}

/// Changes the object the path names by `make`, which sees what is stored.
pub(super) async fn update(
    call: &Call<'_>,
    subresource: &str,
    make: &(dyn Fn(&Value) -> Result<Update> + Sync),
) -> Result<Written> {
    for _ in 0..RACE_RETRIES {
        let found = call.find()?;
        let old = form::to_requested(call.server, &call.resource, found.value()).await?;
        let update = make(&old)?;
        let write = Write {
            call,
            subresource,
            options: options::shown(&call.query, "UpdateOptions"),
            old: Some(Old {
                found: &found,
                value: &old,
            }),
        };
        let placed = place::run(&write, update.object)?;
        // Who named no version wants the change anyway; other writes are remade.
        let insists = placed.names_version() && call.is_put();
        let written = async {
            let mutated = mutate::run(&write, placed, update.managers).await?;
            finish(&write, mutated).await
        };
        match written.await {
            Err(WriteOr::Write(WriteError::Changed)) if !insists => {}
            Err(error) => return Err(refusal(call, call.name(), error)),
            Ok(written) => return Ok(written),
        }
    }
    Err(ApiError::modified(call.resource.subject(), call.name()))
}

fn refusal(call: &Call<'_>, name: &str, error: WriteOr) -> ApiError {
    match error {
        WriteOr::Write(error) => refusal::of_write(call, name, error),
        WriteOr::Refused(error) => error,
    }
}

/// The stages after the object has its name.
async fn finish(write: &Write<'_, '_>, mutated: Mutated) -> Result<Written, WriteOr> {
    let prepared = prepare::run(write, mutated)?;
    let valid = validate::run(write, prepared)?;
    let admitted = admit::run(write, valid).await?;
    commit::run(write, admitted).await
}

/// The version an object says it is of; zero says nothing.
fn version_named(object: &Value) -> Result<Option<u64>> {
    match meta(object, "resourceVersion") {
        "" => Ok(None),
        text => match text.parse() {
            Ok(0) => Ok(None),
            Ok(version) => Ok(Some(version)),
            Err(_) => Err(ApiError::without_reason(format!(
                "strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))),
        },
    }
}
