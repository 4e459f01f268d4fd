//! From what a client sent to an object of a known type.
//!
//! A body is of the kind that the path names (`kind`), from JSON or `protobuf`, and is read into its
//! type field by field (`reader`) down to what has no parts (`scalar`).

mod error;
mod kind;
pub(crate) mod protobuf;
mod reader;
mod scalar;

use serde_json::{Value, json};

pub(crate) use error::DecodeError;
pub(crate) use kind::{check_kind, misread, unreadable};
use reader::Reader;
pub(crate) use scalar::whole_numbers;

use crate::http::Query;
use crate::place::Place;
use crate::registry::resource::Resource;
use crate::registry::types::Type;
use windlass_schema::{MetadataError, ObjectSchema, ReadError};

/// What to do about fields the server does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl FieldValidation {
    /// What the query asks for; the value itself when it is none of these.
    pub(crate) fn from_query(query: &Query) -> Result<Self, &str> {
        match query.get("fieldValidation") {
            None | Some("Warn") => Ok(Self::Warn),
            Some("Ignore") => Ok(Self::Ignore),
            Some("Strict") => Ok(Self::Strict),
            Some(other) => Err(other),
        }
    }
}

/// Brings an object into the form it is stored in; the unknown fields come back, or why it is not
/// of its type.
pub(crate) fn normalise(
    object: &mut Value,
    resource: &Resource,
) -> Result<Vec<String>, DecodeError> {
    normalise_as(object, resource, ObjectSchema::read)
}

/// The same for an object that an apply made.
pub(crate) fn normalise_applied(
    object: &mut Value,
    resource: &Resource,
) -> Result<Vec<String>, DecodeError> {
    normalise_as(object, resource, ObjectSchema::read_applied)
}

fn normalise_as(
    object: &mut Value,
    resource: &Resource,
    read: fn(&ObjectSchema, &mut Value) -> Result<Vec<String>, ReadError>,
) -> Result<Vec<String>, DecodeError> {
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".into(), resource.api_version().into());
        map.insert("kind".into(), resource.kind.clone().into());
        if map.get("metadata").is_none_or(serde_json::Value::is_null) {
            map.insert("metadata".into(), json!({}));
        }
    }
    // An empty list of owners and one empty owner both ask for ownership to be forgotten.
    if object["metadata"].get("managedFields") == Some(&json!([])) {
        object["metadata"]["managedFields"] = json!([{}]);
    }
    let mut reader = Reader::of(&resource.kind);
    match &resource.custom {
        None => reader.read(object, &resource.ty, &Place::Root)?,
        Some(custom) => {
            let place = Place::Field(&Place::Root, "metadata");
            if let Some(metadata) = object.get_mut("metadata") {
                reader.structure = "ObjectMeta";
                reader.read(metadata, resource.ty.member("metadata"), &place)?;
            }
            let own = reader.unknown.into_texts();
            return Ok([own, read(&custom.objects, object)?].concat());
        }
    }
    Ok(reader.unknown.into_texts())
}

/// Why what is posted to a subresource cannot be read as its kind, if so.
pub(crate) fn check_body(
    body: &Value,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<(), DecodeError> {
    if !body.is_object() {
        return Err(DecodeError::not_an_object(body));
    }
    let package = match group.split('.').next() {
        None | Some("") => "core",
        Some(package) => package,
    };
    let ty = Type::Named(format!("io.k8s.api.{package}.{version}.{kind}").into());
    Reader::of(kind).read(&mut body.clone(), &ty, &Place::Root)
}

/// Reads the metadata of an object inside of another; its unknown fields come back.
pub(crate) fn read_metadata(metadata: &mut Value) -> Result<Vec<String>, MetadataError> {
    let mut reader = Reader::of("ObjectMeta");
    let ty = Type::Named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta".into());
    let read = reader.read(metadata, &ty, &Place::Root);
    read.map_err(|error| MetadataError::of(&error))?;
    Ok(reader.unknown.into_texts())
}
