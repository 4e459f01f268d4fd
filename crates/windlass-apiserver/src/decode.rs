//! From what a client sent to an object of a known type.
//!
//! A built-in object is read as Go would read it into a struct: unknown fields are dropped (and
//! told), nulls and empty collections vanish, a value of the wrong type is an error.

use serde_json::Value;

use crate::http::Query;
use crate::resource::Resource;
use crate::status::{ApiError, Result};
use crate::types::{Scalar, Type};

/// What to do about fields the server does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl FieldValidation {
    pub(crate) fn from_query(query: &Query) -> Result<Self> {
        match query.get("fieldValidation") {
            None | Some("Warn") => Ok(Self::Warn),
            Some("Ignore") => Ok(Self::Ignore),
            Some("Strict") => Ok(Self::Strict),
            Some(other) => Err(ApiError::bad_request(format!(
                "fieldValidation parameter unsupported: {other}: must be one of Ignore, Strict, Warn"
            ))),
        }
    }
}

/// Checks that the body is an object of this resource's kind, filling in nothing.
pub(crate) fn check_kind(object: &Value, resource: &Resource) -> Result<()> {
    if !object.is_object() {
        return Err(ApiError::bad_request(
            "the body of the request must be a JSON object",
        ));
    }
    let (kind, api_version) = (
        object["kind"].as_str().unwrap_or_default(),
        object["apiVersion"].as_str().unwrap_or_default(),
    );
    // A typed body may leave both out: the path tells.
    if (kind.is_empty() || kind == resource.kind)
        && (api_version.is_empty() || api_version == resource.api_version())
    {
        return Ok(());
    }
    if kind == resource.kind {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            resource.api_version()
        )));
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let _ = group;
    Err(ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {}",
        resource.kind
    )))
}

/// Brings an object into the form it is stored in; the unknown fields come back.
pub(crate) fn normalise(object: &mut Value, resource: &Resource) -> Result<Vec<String>> {
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".into(), resource.api_version().into());
        map.insert("kind".into(), resource.kind.clone().into());
    }
    let mut unknown = Vec::new();
    let mismatch = |place: String| {
        ApiError::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {place}",
            resource.kind, resource.version, resource.kind
        ))
    };
    match &resource.custom {
        None => read(object, &resource.ty, "", &mut unknown).map_err(mismatch)?,
        Some(custom) => {
            unknown = custom.prune_and_default(object);
            if let Some(metadata) = object.get_mut("metadata") {
                read(
                    metadata,
                    resource.ty.member("metadata"),
                    "metadata",
                    &mut unknown,
                )
                .map_err(mismatch)?;
            }
        }
    }
    if let Some(map) = object.as_object_mut()
        && !map.get("metadata").is_some_and(Value::is_object)
    {
        map.insert("metadata".into(), Value::Object(serde_json::Map::new()));
    }
    Ok(unknown)
}

/// Reads `value` as `ty`; the error names the place and what was found there.
fn read(value: &mut Value, ty: &Type, path: &str, unknown: &mut Vec<String>) -> Result<(), String> {
    let below = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    match ty.resolve() {
        Type::Any | Type::Named(_) => Ok(()),
        Type::Scalar(scalar) => read_scalar(value, *scalar, path),
        Type::Struct { fields, open, .. } => {
            let map = value.as_object_mut().ok_or_else(|| {
                format!("json: cannot unmarshal into field {path} of type object")
            })?;
            if !open {
                let strange: Vec<String> = map
                    .keys()
                    .filter(|name| !fields.contains_key(*name))
                    .cloned()
                    .collect();
                for name in strange {
                    map.remove(&name);
                    unknown.push(below(&name));
                }
            }
            let mut gone = Vec::new();
            for (name, value) in map.iter_mut() {
                let Some(field) = fields.get(name) else {
                    continue;
                };
                if value.is_null() {
                    gone.push(name.clone());
                    continue;
                }
                read(value, &field.ty, &below(name), unknown)?;
                let empty_map = matches!(field.ty.resolve(), Type::Map { .. })
                    && value.as_object().is_some_and(serde_json::Map::is_empty);
                if empty_map || value.as_array().is_some_and(Vec::is_empty) {
                    gone.push(name.clone());
                }
            }
            for name in gone {
                map.remove(&name);
            }
            Ok(())
        }
        Type::Map { value: ty, .. } => {
            let map = value
                .as_object_mut()
                .ok_or_else(|| format!("json: cannot unmarshal into field {path} of type map"))?;
            map.iter_mut()
                .try_for_each(|(name, value)| read(value, ty, &below(name), unknown))
        }
        Type::List { item, .. } => {
            let items = value
                .as_array_mut()
                .ok_or_else(|| format!("json: cannot unmarshal into field {path} of type list"))?;
            items.iter_mut().enumerate().try_for_each(|(index, value)| {
                read(value, item, &format!("{path}[{index}]"), unknown)
            })
        }
    }
}

fn read_scalar(value: &Value, scalar: Scalar, path: &str) -> Result<(), String> {
    let (fits, wanted) = match scalar {
        Scalar::String => (value.is_string(), "string"),
        Scalar::Time => (
            value
                .as_str()
                .is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok()),
            "Time",
        ),
        Scalar::Integer => (value.is_i64() || value.is_u64(), "int64"),
        Scalar::Number => (value.is_number(), "float64"),
        Scalar::Boolean => (value.is_boolean(), "bool"),
        Scalar::IntOrString => (
            value.is_string() || value.is_i64() || value.is_u64(),
            "intstr.IntOrString",
        ),
        Scalar::Quantity => (value.is_string() || value.is_number(), "resource.Quantity"),
        Scalar::Any => (true, ""),
    };
    if fits || value.is_null() {
        return Ok(());
    }
    let found = match value {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Array(_) => "array",
        _ => "object",
    };
    Err(format!(
        "json: cannot unmarshal {found} into Go struct field {path} of type {wanted}"
    ))
}
