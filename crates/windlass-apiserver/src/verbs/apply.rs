//! Server-side apply as a request: the configuration read, merged and stored.

use http::StatusCode;
use serde_json::{Value, json};

use super::pipeline::{self, Update};
use super::{Call, body, form, ownership, present, update};
use crate::apply::{self, Managers, Writer};
use crate::decode::DecodeError;
use crate::http::Answer;
use crate::json;
use crate::object::{meta, set_meta};
use crate::registry::resource::Resource;
use crate::status::{ApiError, Result};
use crate::store::Stored;

pub(super) async fn run(call: &Call<'_>, subresource: &str) -> Result<Answer> {
    // That there is one was checked with the other options.
    let manager = call.query.get("fieldManager").unwrap_or_default();
    let creates =
        subresource.is_empty() || update::creates_what_is_missing(&call.resource, subresource);
    if !creates {
        call.find()?;
    }
    let mut config = body::applied_config(call)?;
    check_type(&call.resource, &config)?;
    if config["metadata"]
        .get("managedFields")
        .is_some_and(|fields| !fields.is_null())
    {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    if !meta(&config, "name").is_empty() && meta(&config, "name") != call.name() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            meta(&config, "name"),
            call.name()
        )));
    }
    if call.resource.is_custom()
        && let Ok(found) = call.find()
        && !has_managers(&found)
    {
        let live = form::to_requested(call.server, &call.resource, found.value()).await?;
        if Managers::read(&live["metadata"]["managedFields"]).is_empty() {
            check_live(&call.resource, &live)?;
        }
    }
    apply::check(&config, &call.resource.ty).map_err(|error| {
        ApiError::without_reason(format!(
            "failed to create typed patch object ({}/{}; {}/{}, Kind={}): {error}",
            meta(&config, "namespace"),
            meta(&config, "name"),
            call.resource.group,
            call.resource.version,
            call.resource.kind
        ))
    })?;
    if call.resource.is_custom() {
        crate::decode::whole_numbers(&mut config);
    }
    keep_only_own_part(&mut config, subresource, call.resource.has_status());
    let (now, api_version) = (
        call.server.clock().now_seconds(),
        call.resource.api_version(),
    );
    let writer = Writer {
        manager,
        api_version: &api_version,
        subresource,
        now: Some(&now),
    };
    let force = call.query.flag("force");
    let merge = |old: &Value| -> Result<Update> {
        let managers = Managers::read(&old["metadata"]["managedFields"]);
        let live = without_managers(old);
        let untracked = managers.is_empty() && !meta(old, "uid").is_empty();
        let managers = if untracked {
            before_first_apply(&call.resource, &live, &writer)
        } else {
            managers
        };
        let applied = apply::apply(&live, &config, &call.resource.ty, managers, &writer, force)?;
        let mut object = applied.object;
        let read = if call.resource.is_custom() {
            crate::decode::normalise_applied(&mut object, &call.resource).map(drop)
        } else {
            form::normalise(&call.resource, &mut object).map(drop)
        };
        read.map_err(|why| unconvertible(&call.resource, &config, &why))?;
        Ok(Update {
            object,
            managers: Some(applied.managers),
        })
    };
    if call.find().is_err() {
        if !creates {
            return Err(call.not_found());
        }
        if meta(&config, "name").is_empty() {
            return Err(call.nameless());
        }
        call.authorize_create()?;
        let uid = meta(&config, "uid");
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(ApiError::conflict(
                call.resource.subject(),
                call.name(),
                &why,
            ));
        }
        let mut made = merge(&json!({}))?;
        set_meta(&mut made.object, "name", Some(call.name().into()));
        // A version is asked for in an update; what is made has none yet.
        set_meta(&mut made.object, "resourceVersion", None);
        let made = pipeline::create_through(call, subresource, made.object, made.managers);
        match made.await {
            // Somebody else made it meanwhile: it is there to be changed.
            Err(error) if error.reason == "AlreadyExists" => {}
            made => return present::written(call, made?, StatusCode::CREATED).await,
        }
    }
    let written = pipeline::update(call, subresource, &merge).await?;
    present::written(call, written, StatusCode::OK).await
}

/// Whether anybody is recorded for a stored object, which is read no further.
fn has_managers(found: &Stored) -> bool {
    let metadata = json::member(&found.json, "metadata");
    let managers = metadata.and_then(|metadata| json::member(metadata, "managedFields"));
    managers.is_some_and(|managers| !matches!(managers, b"[]" | b"null"))
}

/// The object without the record of its owners, which may be larger than the rest.
fn without_managers(object: &Value) -> Value {
    let Some(members) = object.as_object() else {
        return object.clone();
    };
    let members = members.iter().map(|(key, value)| {
        let kept = match value.as_object() {
            Some(metadata) if key == "metadata" => {
                let kept = metadata.iter().filter(|(key, _)| *key != "managedFields");
                kept.map(|(key, value)| (key.clone(), value.clone()))
                    .collect()
            }
            _ => value.clone(),
        };
        (key.clone(), kept)
    });
    Value::Object(members.collect())
}

/// What has not the form of its type cannot be anybody's, so nobody can begin to own it.
fn check_live(resource: &Resource, live: &Value) -> Result<()> {
    if apply::is_typed(live, &resource.ty) {
        return Ok(());
    }
    let Resource {
        group,
        version,
        kind,
        ty,
        ..
    } = resource;
    let (namespace, name) = (meta(live, "namespace"), meta(live, "name"));
    let why = apply::check(live, ty).err();
    let why = why.map_or_else(String::new, |why| why.to_string());
    Err(ApiError::without_reason(format!(
        "failed to create manager for existing fields: failed to convert new object ({namespace}/{name}; {group}/{version}, Kind={kind}) to smd typed: {why}"
    )))
}

/// A configuration that fits the schema and still is no object of its kind.
fn unconvertible(resource: &Resource, config: &Value, why: &DecodeError) -> ApiError {
    let Resource {
        group,
        version,
        kind,
        ..
    } = resource;
    let (namespace, name) = (meta(config, "namespace"), meta(config, "name"));
    let how = match why {
        DecodeError::Base64(_) => "error decoding from json: ",
        _ => "",
    };
    ApiError::without_reason(format!(
        "failed to convert new object ({namespace}/{name}; {group}/{version}, Kind={kind}) to proper version: unable to convert unstructured object to {group}/{version}, Kind={kind}: {how}{why}"
    ))
}

/// An applied configuration names its type in full.
fn check_type(resource: &Resource, config: &Value) -> Result<()> {
    let text = |field: &str| config[field].as_str().unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    if kind != resource.kind || api_version != resource.api_version() {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        return Err(ApiError::bad_request(format!(
            "invalid object type: {group}/{version}, Kind={kind}"
        )));
    }
    Ok(())
}

/// Who owns an object that nobody was recorded for: one manager that stands for all before.
fn before_first_apply(resource: &Resource, live: &Value, writer: &Writer<'_>) -> Managers {
    let writer = Writer {
        manager: "before-first-apply",
        ..*writer
    };
    apply::record_update(
        &ownership::untouched(resource),
        live,
        &resource.ty,
        Managers::default(),
        &writer,
        &[],
    )
}

/// An apply to the main resource claims no status, one to a subresource nothing else.
fn keep_only_own_part(config: &mut Value, subresource: &str, has_status: bool) {
    let Some(map) = config.as_object_mut() else {
        return;
    };
    match subresource {
        "" if has_status => {
            map.remove("status");
        }
        "" => {}
        part => map.retain(|key, _| {
            key == part || matches!(key.as_str(), "apiVersion" | "kind" | "metadata")
        }),
    }
    if !subresource.is_empty()
        && let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.retain(|key, _| {
            matches!(
                key.as_str(),
                "name" | "namespace" | "uid" | "resourceVersion"
            )
        });
    }
}
