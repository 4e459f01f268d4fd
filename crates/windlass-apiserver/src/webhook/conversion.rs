//! Conversion: objects of a CRD in another version than they are in.
//!
//! With the strategy `None` only `apiVersion` changes, and what the version does not know is left
//! out. With `Webhook` the objects are posted in a
//! `ConversionReview`; as many must come back, of the same kind, name, namespace and uid, and of
//! their metadata only labels and annotations may have changed.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::attributes::Attributes;
use super::call;
use super::configuration::ClientConfig;
use super::review;
use crate::object::{meta, set_meta};
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::status::{ApiError, Result};

/// How long a conversion may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How a CRD's objects change version.
#[derive(Clone, Debug, Default)]
pub(crate) enum Conversion {
    /// All versions look the same.
    #[default]
    None,
    /// A webhook knows.
    Webhook {
        client: Option<ClientConfig>,
        review_versions: Vec<String>,
    },
}

impl Conversion {
    /// What a CRD asks for.
    pub(crate) fn of(crd: &Value) -> Self {
        let conversion = &crd["spec"]["conversion"];
        if conversion["strategy"] != "Webhook" {
            return Self::None;
        }
        let versions = conversion["webhook"]["conversionReviewVersions"].as_array();
        Self::Webhook {
            client: ClientConfig::read(&conversion["webhook"]["clientConfig"]),
            review_versions: versions
                .into_iter()
                .flatten()
                .filter_map(|version| version.as_str().map(str::to_owned))
                .collect(),
        }
    }
}

/// Objects of a custom resource, in the version asked for.
pub(crate) async fn convert(
    server: &ApiServer,
    resource: &Resource,
    api_version: &str,
    mut objects: Vec<Value>,
) -> Result<Vec<Value>> {
    let Some(custom) = &resource.custom else {
        return Ok(objects);
    };
    let (places, mut others): (Vec<usize>, Vec<Value>) = objects
        .iter_mut()
        .enumerate()
        .filter(|(_, object)| object["apiVersion"] != api_version)
        .map(|(place, object)| (place, object.take()))
        .unzip();
    if !others.is_empty() && matches!(custom.conversion, Conversion::Webhook { .. }) {
        others = ask(server, resource, api_version, &others)
            .await
            .map_err(|why| ApiError::without_reason(why.to_string()))?;
    }
    let version = api_version.rsplit('/').next().unwrap_or_default();
    for (place, mut object) in places.into_iter().zip(others) {
        object["apiVersion"] = api_version.into();
        custom.objects.coerce(&mut object, version);
        objects[place] = object;
    }
    Ok(objects)
}

/// Why objects are not converted.
#[derive(Debug, thiserror::Error)]
enum ConversionError {
    #[error("conversion webhook for {about} failed: {why}")]
    Failed { about: String, why: FailedCall },
    #[error("no supported conversion review versions")]
    NoReviewVersion,
    #[error("conversion webhook for {about} returned {what}")]
    Returned { about: String, what: String },
}

/// Why there is no answer that could be used.
#[derive(Debug, thiserror::Error)]
enum FailedCall {
    #[error("webhook configuration must have either service or URL")]
    NoClient,
    #[error(transparent)]
    Call(#[from] call::CallError),
    #[error("expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {0}")]
    Kind(String),
    #[error("no response provided")]
    NoResponse,
    #[error("expected response.uid=\"{expected}\", got \"{got}\"")]
    Uid { expected: String, got: String },
    #[error("response.result.status was '{0}', not 'Success'")]
    Status(String),
    /// In the webhook's own words.
    #[error("{0}")]
    Refused(String),
}

async fn ask(
    server: &ApiServer,
    resource: &Resource,
    api_version: &str,
    objects: &[Value],
) -> Result<Vec<Value>, ConversionError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let named = |object: &Value| {
        let own = text(&object["apiVersion"]);
        format!("{own}, Kind={}", text(&object["kind"]))
    };
    let about = match objects {
        [one] => named(one),
        many => format!(
            "{}, Kind={}",
            text(&many[0]["apiVersion"]),
            resource.list_kind
        ),
    };
    let failed = |why: FailedCall| ConversionError::Failed {
        about: about.clone(),
        why,
    };
    let Some(Conversion::Webhook {
        client: Some(client),
        review_versions,
    }) = resource.custom.as_ref().map(|custom| &custom.conversion)
    else {
        return Err(failed(FailedCall::NoClient));
    };
    let version = call::review_version(review_versions).ok_or(ConversionError::NoReviewVersion)?;
    // A version is given to what is stored, not to what it is made from.
    let shown: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut object = object.clone();
            set_meta(&mut object, "resourceVersion", None);
            object
        })
        .collect();
    let uid = server.random().uid();
    let review = json!({
        "kind": "ConversionReview",
        "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": shown},
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    });
    let answer = call::post(server, client, TIMEOUT, &review)
        .await
        .map_err(|why| failed(why.into()))?;
    // Of an old review neither type nor uid is looked at.
    let expected = (version == "v1").then_some(uid.as_str());
    let converted = verify(&answer, expected).map_err(failed)?;
    if converted.len() != objects.len() {
        let (got, expected) = (converted.len(), objects.len());
        return Err(ConversionError::Returned {
            about,
            what: format!("{got} objects, expected {expected}"),
        });
    }
    let single = objects.len() == 1;
    objects
        .iter()
        .zip(converted)
        .enumerate()
        .map(|(index, (original, converted))| {
            restore(original, converted.clone(), api_version).map_err(|wrong| {
                let what = match (single, &wrong) {
                    (true, Wrong::Type(why)) => format!("invalid object at index 0: {why}"),
                    (true, Wrong::Object(why)) => format!("invalid object: {why}"),
                    (true, Wrong::Metadata(why)) => format!("invalid metadata: {why}"),
                    (false, Wrong::Type(why) | Wrong::Object(why)) => {
                        format!("invalid converted object at index {index}: {why}")
                    }
                    (false, Wrong::Metadata(why)) => {
                        format!("invalid metadata in object at index {index}: {why}")
                    }
                };
                ConversionError::Returned {
                    about: about.clone(),
                    what,
                }
            })
        })
        .collect()
}

/// The converted objects, when the answer is one to this request and says that it worked.
fn verify<'a>(answer: &'a Value, uid: Option<&str>) -> Result<&'a [Value], FailedCall> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&answer["apiVersion"]), text(&answer["kind"]));
    let is_ours = api_version == "apiextensions.k8s.io/v1" && kind == "ConversionReview";
    if uid.is_some() && !is_ours {
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        return Err(FailedCall::Kind(format!("{group}/{version}, Kind={kind}")));
    }
    let response = &answer["response"];
    if !response.is_object() {
        return Err(FailedCall::NoResponse);
    }
    if let Some(uid) = uid
        && response["uid"] != uid
    {
        let got = text(&response["uid"]);
        let expected = uid.to_owned();
        return Err(FailedCall::Uid { expected, got });
    }
    let result = &response["result"];
    if result["status"] != "Success" {
        let message = text(&result["message"]);
        return Err(if message.is_empty() {
            FailedCall::Status(text(&result["status"]))
        } else {
            FailedCall::Refused(message)
        });
    }
    Ok(response["convertedObjects"]
        .as_array()
        .map_or(&[], Vec::as_slice))
}

/// What is wrong with a converted object.
enum Wrong {
    Type(String),
    Object(String),
    Metadata(String),
}

/// A converted object with the metadata of the original, but for labels and annotations.
fn restore(original: &Value, mut converted: Value, api_version: &str) -> Result<Value, Wrong> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let got = text(&converted["apiVersion"]);
    if got != api_version {
        return Err(Wrong::Type(format!(
            "invalid groupVersion (expected {api_version}, received {got})"
        )));
    }
    let (expected, got) = (text(&original["kind"]), text(&converted["kind"]));
    if got != expected {
        return Err(Wrong::Type(format!(
            "invalid kind (expected {expected}, received {got})"
        )));
    }
    for (field, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, after) = (meta(original, field), meta(&converted, field));
        if before != after {
            let why = format!("must have the same {shown}: {before} != {after}");
            return Err(Wrong::Object(why));
        }
    }
    let Some(told) = converted.get("metadata") else {
        return Err(Wrong::Metadata(
            "missing metadata in converted object".into(),
        ));
    };
    let Some(told) = told.as_object() else {
        return Err(Wrong::Metadata(format!(
            "invalid metadata of type {} in converted object",
            go_type(told)
        )));
    };
    let mut metadata: Map<String, Value> = original["metadata"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for field in ["labels", "annotations"] {
        match told.get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
    converted["metadata"] = Value::Object(metadata);
    Ok(converted)
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What a webhook of another version is shown.
pub(crate) struct Versioned<'a> {
    pub(crate) object: Option<Cow<'a, Value>>,
    pub(crate) old: Option<Cow<'a, Value>>,
}

/// The object and the old object, in the version a webhook asked for.
pub(crate) async fn both<'a>(
    attributes: &Attributes<'a>,
    wanted: &Resource,
    object: Option<&'a Value>,
) -> Result<Versioned<'a>> {
    let old = attributes.old;
    if is_same(attributes, wanted) {
        return Ok(Versioned {
            object: object.map(Cow::Borrowed),
            old: old.map(Cow::Borrowed),
        });
    }
    Ok(Versioned {
        object: one(attributes.server, wanted, object).await?,
        old: one(attributes.server, wanted, old).await?,
    })
}

/// An object that a webhook of another version changed, in the version of the request.
pub(super) async fn back(
    attributes: &Attributes<'_>,
    from: &Resource,
    object: Value,
) -> Result<Value> {
    if is_same(attributes, from) {
        return Ok(object);
    }
    let converted = one(attributes.server, attributes.resource, Some(&object)).await?;
    Ok(converted.map(Cow::into_owned).unwrap_or_default())
}

fn is_same(attributes: &Attributes<'_>, wanted: &Resource) -> bool {
    attributes.has_own_body() || attributes.resource.api_version() == wanted.api_version()
}

async fn one<'a>(
    server: &ApiServer,
    wanted: &Resource,
    object: Option<&'a Value>,
) -> Result<Option<Cow<'a, Value>>> {
    let Some(object) = object else {
        return Ok(None);
    };
    let mut converted = object.clone();
    if let Some(to_wanted) = wanted.strategy.other_form() {
        to_wanted(&mut converted);
    } else {
        let api_version = wanted.api_version();
        let all = convert(server, wanted, &api_version, vec![converted])
            .await
            .map_err(|error| review::internal(&error.message))?;
        converted = all.into_iter().next().unwrap_or_default();
    }
    Ok(Some(Cow::Owned(converted)))
}
