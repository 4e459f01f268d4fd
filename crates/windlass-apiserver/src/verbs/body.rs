//! The body of a request, read as what the request says it is.

use serde_json::Value;

use super::{Call, form};
use crate::decode::{self, FieldValidation};
use crate::go;
use crate::http::{Expected, decode_object, decode_yaml};
use crate::json::Document;
use crate::status::{ApiError, Result};

/// The body as the kind of a subresource; `package` is where Go has it.
pub(super) fn decode_posted(call: &Call<'_>, kind: &str, package: &str) -> Result<Value> {
    let body = decode_as(call, kind)?.value;
    let claimed = body["kind"].as_str().unwrap_or_default();
    if claimed.is_empty() || claimed == kind {
        return Ok(body);
    }
    let api_version = body["apiVersion"].as_str().unwrap_or_default();
    let version = api_version.rsplit('/').next().unwrap_or_default();
    Err(ApiError::bad_request(format!(
        "{claimed} in version \"{version}\" cannot be handled as a {kind}: converting ({version}.{claimed}) to ({package}.{kind}): unknown conversion"
    )))
}

/// Reads the body as an object of this resource, in stored form.
pub(crate) fn decode(call: &Call<'_>) -> Result<Value> {
    let document = decode_as(call, &call.resource.kind)?;
    let mut object = document.value;
    decode::check_kind(&object, &call.resource)?;
    let unreadable = |why: String| decode::unreadable(&call.resource, &why);
    let strange = document.duplicates.iter();
    let mut strange: Vec<String> = strange
        .map(|path| format!("duplicate field \"{path}\""))
        .collect();
    let unknown = form::normalise(&call.resource, &mut object);
    strange.extend(unknown.map_err(|why| unreadable(why.to_string()))?);
    if !call.resource.is_custom() {
        strange.truncate(crate::findings::MOST_STRANGE);
    }
    judge_strange(call, strange, unreadable)?;
    Ok(object)
}

/// What to do about unknown and repeated fields: nothing, warnings, or an error made by `refuse`.
pub(super) fn judge_strange(
    call: &Call<'_>,
    strange: Vec<String>,
    refuse: impl FnOnce(String) -> ApiError,
) -> Result<()> {
    match call.field_validation {
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Strict if !strange.is_empty() => Err(refuse(format!(
            "strict decoding error: {}",
            strange.join(", ")
        ))),
        FieldValidation::Strict | FieldValidation::Warn => {
            call.warn(strange);
            Ok(())
        }
    }
}

/// The body as an object of some kind.
pub(crate) fn decode_as(call: &Call<'_>, kind: &str) -> Result<Document> {
    let resource = &call.resource;
    let mut expected = Expected {
        group: &resource.group,
        version: &resource.version,
        kind,
        has_message: true,
    };
    let subresource = call.request.subresource.as_deref();
    let body = subresource
        .and_then(|name| resource.subresource(name))
        .and_then(|sub| sub.body.as_ref());
    match body {
        _ if kind == resource.kind => expected.has_message = !resource.is_custom(),
        Some((group, version, named)) if kind == named => {
            (expected.group, expected.version) = (group, version);
        }
        // Options are the same in every group.
        _ => (expected.group, expected.version) = ("meta.k8s.io", "v1"),
    }
    decode_object(call.headers, &call.body, &expected)
}

/// The body as YAML, which has to be a map.
pub(super) fn applied_config(call: &Call<'_>) -> Result<Value> {
    let (config, repeated) = decode_yaml(&call.body)?;
    if config.is_object() {
        judge_repeated_key(call, repeated)?;
        return Ok(config);
    }
    Err(ApiError::bad_request(format!(
        "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
        go::json_kind(&config)
    )))
}

/// A key that is said twice is told of, as far as the request wants that.
fn judge_repeated_key(call: &Call<'_>, repeated: Option<String>) -> Result<()> {
    match (call.field_validation, repeated) {
        (FieldValidation::Strict, Some(repeated)) => Err(ApiError::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: \
             yaml: unmarshal errors:\n  {repeated}"
        ))),
        (FieldValidation::Warn, Some(repeated)) => {
            call.warn(vec![repeated]);
            Ok(())
        }
        _ => Ok(()),
    }
}
