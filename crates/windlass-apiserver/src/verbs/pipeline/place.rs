//! Whether the object is the one that the path names.

use std::sync::atomic::Ordering;

use serde_json::Value;

use super::{Write, version_named};
use crate::object::{meta, set_meta};
use crate::registry::resource::Resource;
use crate::status::{ApiError, Result};
use crate::system_fields;
use crate::verbs::Call;

/// An object that is where the path says.
pub(super) struct Placed {
    object: Value,
    names_version: bool,
}

impl Placed {
    /// Whether the client named the version it means.
    pub(super) fn names_version(&self) -> bool {
        self.names_version
    }

    pub(super) fn into_object(self) -> Value {
        self.object
    }
}

/// Places an object that a client sent.
pub(super) fn run(write: &Write<'_, '_>, mut object: Value) -> Result<Placed> {
    let call = write.call;
    let Some(old) = &write.old else {
        refuse_terminating(&call.resource, &object)?;
        put(call, &mut object)?;
        system_fields::wipe(&mut object);
        return Ok(Placed {
            object,
            names_version: false,
        });
    };
    check_identity(call, &object, old.value)?;
    put(call, &mut object)?;
    let named = version_named(&object)?;
    if named.is_some_and(|named| named != old.found.revision) {
        return Err(ApiError::modified(call.resource.subject(), call.name()));
    }
    set_meta(&mut object, "name", Some(call.name().into()));
    Ok(Placed {
        object,
        names_version: named.is_some(),
    })
}

fn refuse_terminating(resource: &Resource, object: &Value) -> Result<()> {
    let custom = resource.custom.as_ref();
    if custom.is_some_and(|custom| custom.terminating.load(Ordering::Relaxed)) {
        return Err(ApiError::forbidden(
            resource.subject(),
            meta(object, "name"),
            "create not allowed while custom resource definition is terminating",
        ));
    }
    Ok(())
}

/// Puts the object where the path says, or says that it is elsewhere.
pub(crate) fn put(call: &Call<'_>, object: &mut Value) -> Result<()> {
    let given = meta(object, "namespace").to_owned();
    if !call.resource.namespaced {
        set_meta(object, "namespace", None);
        return Ok(());
    }
    if !given.is_empty() && given != call.namespace() {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let namespace = Some(call.namespace()).filter(|namespace| !namespace.is_empty());
    set_meta(object, "namespace", namespace.map(Value::from));
    Ok(())
}

/// Where kube-apiserver keeps an object, which some of its messages tell.
fn storage_key(call: &Call<'_>) -> String {
    let table = call.resource.strategy.storage_prefix(&call.resource);
    let namespace = match call.namespace() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    // A dry run does not get as far as the place where everything is kept.
    let root = if call.dry_run { "" } else { "/registry" };
    format!("{root}/{table}/{namespace}{}", call.name())
}

/// What is said to a write that means an object of another uid.
pub(in crate::verbs) fn uid_mismatch(call: &Call<'_>, asked: &str, is: &str) -> String {
    format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {asked}, UID in object meta: {is}",
        storage_key(call)
    )
}

/// A PUT that names a uid means that object; a patch that names another tries to change it.
pub(in crate::verbs) fn check_uid(call: &Call<'_>, new: &Value, is: &str) -> Result<()> {
    let asked = meta(new, "uid");
    if !call.is_put() || asked.is_empty() || asked == is {
        return Ok(());
    }
    Err(ApiError::conflict(
        call.resource.subject(),
        call.name(),
        &uid_mismatch(call, asked, is),
    ))
}

fn check_identity(call: &Call<'_>, new: &Value, old: &Value) -> Result<()> {
    let name = meta(new, "name");
    if !name.is_empty() && name != call.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name()
        )));
    }
    check_uid(call, new, meta(old, "uid"))
}
