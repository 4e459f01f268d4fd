//! Update: an object replaced as a whole.

use http::StatusCode;
use serde_json::{Value, json};

use super::pipeline::{self, Update, place};
use super::present::{self, Written};
use super::{Call, body};
use crate::http::Answer;
use crate::object::{meta, set_meta};
use crate::registry::resource::Resource;
use crate::status::{ApiError, Result, field};

/// Whether an update makes what is not there. That of the status of a kind that has one does,
/// too: nobody thought of forbidding it.
pub(super) fn creates_what_is_missing(resource: &Resource, subresource: &str) -> bool {
    matches!(subresource, "" | "status") && resource.strategy.is_created_by_update()
}

/// The name of the object is that of the path.
fn check_name(call: &Call<'_>, object: &serde_json::Value) -> Result<()> {
    let name = meta(object, "name");
    if name == call.name() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "the name of the object ({name}) does not match the name on the URL ({})",
        call.name()
    )))
}

pub(super) async fn run(call: &Call<'_>, subresource: &str) -> Result<Answer> {
    let mut object = body::decode(call)?;
    if meta(&object, "name").is_empty() {
        return Err(call.nameless());
    }
    check_name(call, &object)?;
    let named = |field: &str| !matches!(meta(&object, field), "" | "0");
    call.note_guard(named("resourceVersion") || named("uid"));
    place::put(call, &mut object)?;
    if creates_what_is_missing(&call.resource, subresource) && call.find().is_err() {
        call.authorize_create()?;
        let uid = meta(&object, "uid");
        if !uid.is_empty() {
            let why = place::uid_mismatch(call, uid, "");
            return Err(ApiError::conflict(
                call.resource.subject(),
                call.name(),
                &why,
            ));
        }
        // The version of what is not there means nothing.
        let version = object["metadata"]["resourceVersion"].take();
        set_meta(&mut object, "resourceVersion", None);
        let mut written = pipeline::create_through(call, subresource, object, None).await?;
        if let Written::Value(object) = &mut written
            && version.is_string()
        {
            set_meta(object, "resourceVersion", Some(version));
        }
        return present::written(call, written, StatusCode::CREATED).await;
    }
    let needs_version = call.resource.strategy.needs_version();
    if needs_version && matches!(meta(&object, "resourceVersion"), "" | "0") {
        // The object must be there, and be the one meant, before its version is asked for.
        let found = call.find()?;
        place::check_uid(call, &object, &found.uid)?;
        let cause = field::invalid(
            "metadata.resourceVersion",
            &json!(0),
            "must be specified for an update",
        );
        return Err(ApiError::invalid(
            call.resource.subject(),
            call.name(),
            &[cause],
        ));
    }
    let make = |_: &Value| -> Result<Update> {
        Ok(Update {
            object: object.clone(),
            managers: None,
        })
    };
    let written = pipeline::update(call, subresource, &make).await?;
    present::written(call, written, StatusCode::OK).await
}
