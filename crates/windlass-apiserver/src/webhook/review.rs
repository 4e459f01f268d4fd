//! The `AdmissionReview`: what a webhook is told, and what it may answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::attributes::Attributes;
use super::call;
use super::configuration::Hook;
use crate::registry::resource::Resource;
use crate::status::ApiError;

const GROUP: &str = "admission.k8s.io";

/// What came of a call.
pub(super) enum Outcome {
    Allowed {
        /// A JSON patch, for mutating webhooks.
        patch: Option<Vec<u8>>,
        patch_type: String,
    },
    /// The webhook said no.
    Denied(ApiError),
    /// The webhook could not be asked, or answered nonsense: the failure policy decides.
    Failed(String),
}

/// Asks a webhook about an object of `resource`, the version it wants to see.
pub(super) async fn ask(
    hook: &Hook,
    attributes: &Attributes<'_>,
    resource: &Resource,
    object: Option<&Value>,
    old: Option<&Value>,
    mutating: bool,
) -> Outcome {
    if attributes.dry_run && !matches!(hook.side_effects.as_str(), "None" | "NoneOnDryRun") {
        return Outcome::Denied(ApiError::bad_request(format!(
            "admission webhook \"{}\" does not support dry run",
            hook.name
        )));
    }
    let Some(version) = call::review_version(&hook.review_versions) else {
        return Outcome::Failed(
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
                .to_owned(),
        );
    };
    let Some(client) = &hook.client else {
        return Outcome::Failed(
            "could not get REST client: webhook configuration must have either service or URL"
                .to_owned(),
        );
    };
    let uid = attributes.server.random().uid();
    let api_version = format!("{GROUP}/{version}");
    let review = json!({
        "kind": "AdmissionReview",
        "apiVersion": api_version,
        "request": request(&uid, attributes, resource, object, old),
    });
    let answer = match call::post(attributes.server, client, hook.timeout, &review).await {
        Ok(answer) => answer,
        Err(why) => return Outcome::Failed(format!("failed to call webhook: {why}")),
    };
    let other = if version == "v1" { "v1beta1" } else { "v1" };
    if answer["apiVersion"] == format!("{GROUP}/{other}") {
        return Outcome::Failed(format!(
            "failed to call webhook: converting ({other}.AdmissionReview) to ({version}.AdmissionReview): unknown conversion"
        ));
    }
    let is_old = version == "v1beta1";
    let verified = if is_old {
        verify_old(&answer)
    } else {
        verify(&answer, &uid, mutating)
    };
    let response = match verified {
        Ok(response) => response,
        Err(why) => return Outcome::Failed(format!("received invalid webhook response: {why}")),
    };
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.filter_map(Value::as_str);
    attributes.warnings.add(warnings.map(str::to_owned));
    if response["allowed"] != true {
        return Outcome::Denied(denial(&hook.name, &response["status"]));
    }
    let patch = response["patch"].as_str();
    let patch_type = match response["patchType"].as_str() {
        // There is only one type of patch, and an old review need not name it.
        _ if is_old => "JSONPatch",
        named => named.unwrap_or_default(),
    };
    Outcome::Allowed {
        patch: patch.and_then(|patch| STANDARD.decode(patch).ok()),
        patch_type: patch_type.to_owned(),
    }
}

/// What a webhook is told.
fn request(
    uid: &str,
    attributes: &Attributes<'_>,
    resource: &Resource,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Value {
    let mut request = about(attributes, resource);
    request["uid"] = uid.into();
    request["object"] = json!(object);
    request["oldObject"] = json!(old);
    request
}

/// A request but for the objects, as webhooks and their match conditions see it.
pub(super) fn about(attributes: &Attributes<'_>, resource: &Resource) -> Value {
    let kind = |(group, version, kind): (String, String, String)| json!({"group": group, "version": version, "kind": kind});
    let plural =
        |of: &Resource| json!({"group": of.group, "version": of.version, "resource": of.plural});
    let who = attributes.who;
    let mut user = json!({"username": who.user, "groups": who.groups});
    if !who.uid.is_empty() {
        user["uid"] = who.uid.as_str().into();
    }
    if !who.extra.is_empty() {
        user["extra"] = json!(who.extra);
    }
    let mut request = json!({
        "kind": kind(attributes.kind_in(resource)),
        "resource": plural(resource),
        "requestKind": kind(attributes.kind()),
        "requestResource": plural(attributes.resource),
        "operation": attributes.operation.as_str(),
        "userInfo": user,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    });
    for (field, text) in [
        ("subResource", attributes.subresource),
        ("requestSubResource", attributes.subresource),
        ("name", attributes.name),
        ("namespace", attributes.namespace),
    ] {
        if !text.is_empty() {
            request[field] = text.into();
        }
    }
    request
}

/// Why an answer is none to the request.
#[derive(Debug, thiserror::Error)]
enum ResponseError {
    #[error("webhook response was absent")]
    Absent,
    #[error("expected response.uid=\"{expected}\", got \"{got}\"")]
    Uid { expected: String, got: String },
    #[error("expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {0}")]
    Kind(String),
    #[error("{0}")]
    Patch(&'static str),
}

/// The response of an old review, of which no more is asked than that it is there.
fn verify_old(answer: &Value) -> Result<&Value, ResponseError> {
    let response = &answer["response"];
    if response.is_object() {
        Ok(response)
    } else {
        Err(ResponseError::Absent)
    }
}

/// The response, when it is one to this request.
fn verify<'a>(answer: &'a Value, uid: &str, mutating: bool) -> Result<&'a Value, ResponseError> {
    let response = &answer["response"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if !response.is_object() {
        return Err(ResponseError::Absent);
    }
    if response["uid"] != uid {
        let got = text(&response["uid"]);
        let expected = uid.to_owned();
        return Err(ResponseError::Uid { expected, got });
    }
    if answer["apiVersion"] != format!("{GROUP}/v1") || answer["kind"] != "AdmissionReview" {
        let (api_version, kind) = (text(&answer["apiVersion"]), text(&answer["kind"]));
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        return Err(ResponseError::Kind(format!(
            "{group}/{version}, Kind={kind}"
        )));
    }
    let patch = !text(&response["patch"]).is_empty();
    let patch_type = response["patchType"].is_string();
    let why = match (mutating, patch, patch_type) {
        (true, true, false) => "webhook returned response.patch but not response.patchType",
        (true, false, true) => "webhook returned response.patchType but not response.patch",
        (true, true, true) if response["patchType"] == "" => {
            "webhook returned invalid response.patchType of \"\""
        }
        (false, true, _) => "validating webhook may not return response.patch",
        (false, false, true) => "validating webhook may not return response.patchType",
        _ => return Ok(response),
    };
    Err(ResponseError::Patch(why))
}

/// A denial as the client gets it: the webhook's own status, with who said no.
fn denial(name: &str, status: &Value) -> ApiError {
    let mut told: Map<String, Value> = status.as_object().cloned().unwrap_or_default();
    let code = told
        .get("code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok())
        .and_then(|code| StatusCode::from_u16(code).ok())
        .filter(|code| code.as_u16() >= 400)
        .unwrap_or(StatusCode::BAD_REQUEST);
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    let denied = format!("admission webhook \"{name}\" denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", why) | (why, _) => format!("{denied}: {why}"),
    };
    if matches!(text("status"), "" | "Success") {
        told.insert("status".into(), "Failure".into());
    }
    told.insert("kind".into(), "Status".into());
    told.insert("apiVersion".into(), "v1".into());
    told.entry("metadata").or_insert_with(|| json!({}));
    told.insert("code".into(), code.as_u16().into());
    told.insert("message".into(), message.as_str().into());
    ApiError::told(code, message, Value::Object(told))
}

/// A failed call, as the client gets it.
pub(super) fn failure(hook: &Hook, why: &str) -> ApiError {
    internal(&format!("failed calling webhook \"{}\": {why}", hook.name))
}

/// A 500 with its cause, as Kubernetes tells what went wrong inside.
pub(crate) fn internal(why: &str) -> ApiError {
    let mut error = ApiError::internal(format!("Internal error occurred: {why}"));
    error.set_causes(vec![json!({"message": why})]);
    error
}
