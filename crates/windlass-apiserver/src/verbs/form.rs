//! The forms of an object: as a client sends it, as it is stored, and as a version shows it.

use serde_json::Value;

use crate::decode::{self, DecodeError};
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::status::{ApiError, Result};
use crate::{defaults, webhook};

/// Brings a client's object into stored form; what is strange about it comes back, or why it
/// cannot be read.
pub(super) fn normalise(
    resource: &Resource,
    object: &mut Value,
) -> Result<Vec<String>, DecodeError> {
    let unknown = decode::normalise(object, resource)?;
    if !resource.is_custom() {
        defaults::drop_zeros(object, &resource.ty);
    }
    resource.strategy.before_defaults(object);
    fill_defaults(resource, object);
    resource.strategy.after_defaults(object);
    Ok(unknown
        .iter()
        .map(|path| format!("unknown field \"{path}\""))
        .collect())
}

pub(super) fn fill_defaults(resource: &Resource, object: &mut Value) {
    resource.strategy.fill_defaults(object, &resource.ty);
}

/// The last step to stored form, once it is recorded who wrote what.
pub(super) fn settle(resource: &Resource, object: &mut Value) {
    if !resource.is_custom() {
        defaults::settle(object, &resource.ty);
    }
}

/// What was kept to be shown to who is refused is of no more use.
pub(super) fn drop_shown_empties(resource: &Resource, object: &mut Value) {
    if !resource.is_custom() {
        defaults::drop_shown_empties(object, &resource.ty);
    }
}

/// Looks at an object as it would be stored: some kinds are checked in that form only.
pub(super) fn in_stored_form<T>(
    resource: &Resource,
    object: &Value,
    look: impl FnOnce(&Value) -> T,
) -> T {
    let Some(to_stored) = resource.strategy.stored_form() else {
        return look(object);
    };
    let mut stored = object.clone();
    to_stored(&mut stored);
    look(&stored)
}

/// The form an object is stored in.
pub(super) async fn to_stored(
    server: &ApiServer,
    resource: &Resource,
    mut object: Value,
) -> Result<Value> {
    if let Some(to_stored) = resource.strategy.stored_form() {
        to_stored(&mut object);
    }
    if let Some(custom) = &resource.custom {
        let api_version = custom.objects.stored_api_version(&resource.group);
        let one = vec![object];
        let converted = webhook::convert(server, resource, &api_version, one).await?;
        object = converted.into_iter().next().unwrap_or_default();
        custom.objects.fill_stored(&mut object).map_err(too_much)?;
    }
    Ok(object)
}

/// What would be read after a dry run: what the stored version has defaults for comes, and what
/// it does not know goes.
pub(super) async fn as_if_stored(
    server: &ApiServer,
    resource: &Resource,
    object: Value,
) -> Result<Value> {
    match &resource.custom {
        Some(custom) if !custom.objects.is_stored_version() => {
            let stored = to_stored(server, resource, object).await?;
            to_requested(server, resource, stored).await
        }
        _ => Ok(object),
    }
}

/// The form of the version a resource stands for.
pub(super) async fn to_requested(
    server: &ApiServer,
    resource: &Resource,
    object: Value,
) -> Result<Value> {
    let all = all_to_requested(server, resource, vec![object]).await?;
    Ok(all.into_iter().next().unwrap_or_default())
}

/// The same for many objects, which a webhook is sent together.
pub(super) async fn all_to_requested(
    server: &ApiServer,
    resource: &Resource,
    mut objects: Vec<Value>,
) -> Result<Vec<Value>> {
    for object in &mut objects {
        if let Some(to_requested) = resource.strategy.requested_form() {
            to_requested(object);
        }
        if let Some(custom) = &resource.custom {
            custom.objects.read_stored(object);
        }
    }
    if resource.is_custom() {
        return webhook::convert(server, resource, &resource.api_version(), objects).await;
    }
    Ok(objects)
}

/// No object may have that many defaults.
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn too_much(error: windlass_schema::TooMuch) -> ApiError {
    ApiError::bad_request(error.to_string())
}
