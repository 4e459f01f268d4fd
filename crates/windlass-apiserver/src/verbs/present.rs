//! One object in the form the client wants.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::{Call, form};
use crate::http::{Answer, Shape};
use crate::json;
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::status::Result;
use crate::store::Stored;
use crate::table;

/// The result of a write: what is stored now, or would be.
pub(super) enum Written {
    Stored(Arc<Stored>),
    /// A dry run's object, or one that was deleted by the write.
    Value(Value),
}

/// The answer to a write.
pub(super) async fn written(call: &Call<'_>, written: Written, code: StatusCode) -> Result<Answer> {
    let answer = match written {
        Written::Stored(found) => stored(call, &found).await?,
        Written::Value(object) => value(call, object),
    };
    Ok(answer.with_code(code))
}

pub(super) async fn stored(call: &Call<'_>, stored: &Stored) -> Result<Answer> {
    Ok(match call.wanted.shape {
        Shape::Object if is_stored_form(&call.resource) => Answer::stored(stored.json.clone()),
        _ => value(
            call,
            form::to_requested(call.server, &call.resource, stored.value()).await?,
        ),
    })
}

pub(super) fn value(call: &Call<'_>, object: Value) -> Answer {
    Answer::value(match call.wanted.shape {
        Shape::Object => object,
        Shape::Metadata => metadata_only(&object["metadata"], &call.resource),
        Shape::Table => {
            let revision = object["metadata"]["resourceVersion"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            table::of(
                &call.resource,
                &[object],
                &serde_json::json!({"resourceVersion": revision}),
                table_options(call),
            )
        }
    })
}

pub(super) fn table_options(call: &Call<'_>) -> table::Options {
    table::Options {
        whole_objects: call.query.get("includeObject") == Some("Object"),
        no_objects: call.query.get("includeObject") == Some("None"),
        now: call.server.clock().now(),
    }
}

/// Whether the stored bytes are what a client of this resource reads.
pub(super) fn is_stored_form(resource: &Resource) -> bool {
    match &resource.custom {
        None => resource.strategy.requested_form().is_none(),
        Some(custom) => custom.objects.reads_as_stored(),
    }
}

/// The stored object as bytes of the requested version.
pub(super) async fn object_bytes(
    stored_json: &Bytes,
    resource: &Resource,
    server: &ApiServer,
) -> Result<Bytes> {
    if is_stored_form(resource) {
        return Ok(stored_json.clone());
    }
    let value = serde_json::from_slice(stored_json).unwrap_or_default();
    let value = form::to_requested(server, resource, value).await?;
    Ok(serde_json::to_vec(&value).unwrap_or_default().into())
}

/// Takes the type off an object that stands in a list: the list tells it. Custom objects keep theirs.
pub(super) fn list_item(mut object: Value, resource: &Resource) -> Value {
    if let Some(map) = object.as_object_mut().filter(|_| !resource.is_custom()) {
        map.remove("apiVersion");
        map.remove("kind");
    }
    object
}

fn metadata_only(metadata: &Value, resource: &Resource) -> Value {
    let mut metadata = metadata.clone();
    if let Some(hide) = resource.strategy.hidden_metadata() {
        hide(&mut metadata);
    }
    serde_json::json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

/// The metadata of a stored object, of which nothing else is looked at: every version has the same.
/// It is the stored bytes again, wherever nothing is to be left out of them.
pub(super) fn stored_metadata_only(stored_json: &[u8], resource: &Resource) -> Vec<u8> {
    let metadata = json::member(stored_json, "metadata").unwrap_or(b"null");
    if resource.strategy.hidden_metadata().is_some() {
        let metadata: Value = serde_json::from_slice(metadata).unwrap_or_default();
        return metadata_only(&metadata, resource).to_string().into_bytes();
    }
    let head = br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#;
    [head, metadata, b"}"].concat()
}
