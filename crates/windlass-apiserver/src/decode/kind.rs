//! Whether a body is of the kind that the path names.

use serde_json::Value;

use super::reader::Reader;
use crate::place::Place;
use crate::registry::facts;
use crate::registry::resource::Resource;
use crate::registry::types::Type;
use crate::status::{ApiError, Result, field};

/// The sentence of every body that is of this kind and cannot be read.
pub(crate) fn unreadable(resource: &Resource, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{} in version \"{}\" cannot be handled as a {}: {why}",
        resource.kind, resource.version, resource.kind
    ))
}

/// Checks that the body is an object of this resource's kind, filling in nothing. A typed body may
/// leave kind and version out: the path tells.
pub(crate) fn check_kind(object: &Value, resource: &Resource) -> Result<()> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let same_version = api_version.is_empty() || api_version == resource.api_version();
    if (kind.is_empty() || kind == resource.kind) && same_version {
        return Ok(());
    }
    if resource.is_custom() {
        return Err(if same_version {
            let cause = field::invalid("kind", &kind.into(), &format!("must be {}", resource.kind));
            let mut subject = resource.kind_subject();
            subject.kind = kind;
            ApiError::invalid(subject, crate::object::meta(object, "name"), &[cause])
        } else {
            ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                resource.api_version()
            ))
        });
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let registered = facts::get()
        .resources
        .iter()
        .any(|known| known.kind == kind && known.group == group && known.version == version);
    let why = if registered {
        let package = |group: &str| match group.split('.').next() {
            None | Some("") => "core".to_owned(),
            Some(name) => name.to_owned(),
        };
        format!(
            "converting ({version}.{kind}) to ({}.{}): unknown conversion",
            package(&resource.group),
            resource.kind
        )
    } else {
        format!(
            "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )
    };
    Err(ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {}: {why}",
        resource.kind
    )))
}

/// Why an object that calls itself another built-in kind cannot be read as this one.
pub(crate) fn misread(object: &Value, resource: &Resource) -> Option<String> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let claimed = facts::get().resources.iter().find(|known| {
        let api_version = match known.group.as_str() {
            "" => known.version.clone(),
            group => format!("{group}/{}", known.version),
        };
        known.kind == text("kind") && api_version == text("apiVersion")
    });
    match claimed {
        Some(known) if known.kind != resource.kind => {
            let mut reader = Reader::of(&known.kind);
            let ty = Type::Named(known.type_name.as_str().into());
            let read = reader.read(&mut object.clone(), &ty, &Place::Root);
            read.err().map(|error| error.to_string()).or_else(|| {
                check_kind(object, resource)
                    .err()
                    .map(|error| error.message)
            })
        }
        _ => check_kind(object, resource)
            .err()
            .map(|error| error.message),
    }
}
