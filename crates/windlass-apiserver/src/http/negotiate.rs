//! Which form of an answer the client wants, and which form its body has.

use std::fmt::Write as _;

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::Value;

use crate::decode::protobuf;
use crate::go;
use crate::json::{self, Document};
use crate::status::{ApiError, Result};

/// What client-go's typed clients send.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The body of a DELETE, the one that is not an object.
const OPTIONS: &str = "DeleteOptions";

/// The shape of what is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The objects themselves.
    Object,
    /// Rows and columns for people.
    Table,
    /// Metadata only.
    Metadata,
}

/// How it is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
}

impl Encoding {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

/// What the `Accept` header asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) shape: Shape,
    pub(crate) encoding: Encoding,
}

impl Wanted {
    pub(crate) const JSON: Self = Self {
        shape: Shape::Object,
        encoding: Encoding::Json,
    };

    /// The first form in the header that can be given, if any; protobuf cannot, and clients name
    /// JSON behind it.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let Some(accept) = headers
            .get(ACCEPT)
            .and_then(|accept| accept.to_str().ok())
            .filter(|text| !text.is_empty())
        else {
            return Some(Self::JSON);
        };
        accept.split(',').find_map(Self::one)
    }

    /// Nothing of what the client accepts can be given. Where there is a watch, its forms are told
    /// as well.
    pub(crate) fn none_acceptable(headers: &HeaderMap, watchable: bool) -> ApiError {
        let mut message =
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml"
                .to_owned();
        // Bodies are read in protobuf and not written: who wants them so must not read that they are.
        let wants_protobuf = headers.get_all(ACCEPT).iter().any(|accept| {
            let accept = accept.to_str().unwrap_or_default();
            accept.contains(PROTOBUF)
        });
        if !wants_protobuf {
            let _ = write!(message, ", {PROTOBUF}");
        }
        if watchable {
            message.push_str(", application/json;stream=watch");
        }
        if watchable && !wants_protobuf {
            let _ = write!(message, ", {PROTOBUF};stream=watch");
        }
        let mut error = ApiError::new(http::StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message);
        error.details = Some(serde_json::json!({}));
        error
    }

    fn one(clause: &str) -> Option<Self> {
        let mut parts = clause.split(';').map(str::trim);
        let encoding = match parts.next()? {
            "application/json" | "application/*" | "*/*" => Encoding::Json,
            "application/yaml" => Encoding::Yaml,
            _ => return None,
        };
        let (mut shape, mut version) = (None, "v1");
        for part in parts {
            match part.split_once('=') {
                Some(("as", name)) => shape = Some(name),
                Some(("v", named)) => version = named,
                _ => {}
            }
        }
        let shape = match shape {
            None => Shape::Object,
            Some("Table") if version == "v1" => Shape::Table,
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") if version == "v1" => {
                Shape::Metadata
            }
            Some(_) => return None,
        };
        Some(Self { shape, encoding })
    }
}

/// The media type of the request's body, without parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim()
}

/// What the body of a request should hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    /// Whether its type is known as a protobuf message: those of custom resources are not.
    pub(crate) has_message: bool,
}

/// Reads a body that holds one object, as JSON, YAML or protobuf.
pub(crate) fn decode_object(
    headers: &HeaderMap,
    body: &[u8],
    expected: &Expected<'_>,
) -> Result<Document> {
    let kind = expected.kind;
    let document = match media_type(headers) {
        "" | "application/json" => json::from_json(body)
            .map_err(|error| unrecognised(kind, &json::go_error(&error, body), body))?,
        "application/yaml" => Document {
            value: decode_yaml(body)?.0,
            ..Document::default()
        },
        PROTOBUF if expected.has_message => Document {
            value: protobuf::decode(body, expected).map_err(|failure| {
                ApiError::bad_request(match (kind, failure.claimed) {
                    (OPTIONS, _) => failure.why,
                    (_, Some((claimed, version))) => format!(
                        "{claimed} in version {version:?} cannot be handled as a {kind}: {}",
                        failure.why
                    ),
                    (_, None) => format!(
                        "the object provided is unrecognized (must be of type {kind}): {} ({})",
                        failure.why,
                        summary(body)
                    ),
                })
            })?,
            ..Document::default()
        },
        _ => {
            let known = ["application/json", "application/yaml", PROTOBUF];
            return Err(ApiError::unsupported_media_type(&known));
        }
    };
    if document.value.is_null() && !expected.has_message {
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in 'null' (6e756c6c)"
        )));
    }
    if document.value.is_null() {
        // An object of the kind with nothing in it.
        return Ok(Document {
            value: serde_json::json!({}),
            ..document
        });
    }
    if !document.value.is_object() {
        let problem = format!(
            "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            go::json_kind(&document.value)
        );
        return Err(unrecognised(kind, &problem, body));
    }
    for field in ["apiVersion", "kind"] {
        let value = &document.value[field];
        if !value.is_string() && !value.is_null() {
            let problem = format!(
                "json: cannot unmarshal {} into Go struct field .{field} of type string",
                go::json_kind(value)
            );
            return Err(unrecognised(kind, &problem, body));
        }
    }
    let claimed = document.value["kind"].as_str().unwrap_or_default();
    if claimed.is_empty() && !expected.has_message && kind != OPTIONS {
        let text = String::from_utf8_lossy(body);
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{text}' ({text})"
        )));
    }
    if kind == OPTIONS && !claimed.is_empty() && claimed != OPTIONS {
        let version = document.value["apiVersion"].as_str().unwrap_or_default();
        return Err(ApiError::bad_request(format!(
            "no kind \"{claimed}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    Ok(document)
}

/// The body is no object of any kind.
fn unrecognised(kind: &str, problem: &str, body: &[u8]) -> ApiError {
    let problem = format!("couldn't get version/kind; json parse error: {problem}");
    if kind == OPTIONS {
        return ApiError::bad_request(problem);
    }
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {problem} ({})",
        summary(body)
    ))
}

/// The beginning of a body: as text when it starts like JSON, in hexadecimal otherwise.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let start = body.get(..SHOWN).unwrap_or(body);
    let shown = match body {
        [] => return "<empty>".to_owned(),
        [b'{', ..] => String::from_utf8_lossy(start).into_owned(),
        _ => start.iter().fold(String::new(), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        }),
    };
    if body.len() > SHOWN {
        format!("{shown} ...")
    } else {
        shown
    }
}

/// Reads YAML; with it comes what is to be said about a key that is there twice.
pub(crate) fn decode_yaml(body: &[u8]) -> Result<(Value, Option<String>)> {
    let text = std::str::from_utf8(body)
        .map_err(|error| ApiError::bad_request(format!("the body is not UTF-8: {error}")))?;
    json::from_yaml(text).map_err(|error| {
        // Our parser says where; Kubernetes' mostly does not.
        let said = error.to_string();
        let what = said.lines().next().unwrap_or_default();
        let what = what.rsplit_once(": ").map_or(what, |(_, what)| what);
        ApiError::bad_request(format!(
            "error decoding YAML: error converting YAML to JSON: yaml: {what}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(accept: &str) -> Option<Wanted> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        Wanted::from_headers(&headers)
    }

    #[test]
    fn the_first_form_that_can_be_given_is_taken() {
        let table = Wanted {
            shape: Shape::Table,
            encoding: Encoding::Json,
        };
        assert_eq!(
            wanted("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
            Some(table)
        );
        assert_eq!(
            wanted("application/json;as=Table;v=v9;g=meta.k8s.io, application/json"),
            Some(Wanted::JSON)
        );
        assert_eq!(
            wanted("application/vnd.kubernetes.protobuf,application/json"),
            Some(Wanted::JSON)
        );
        assert_eq!(wanted("application/vnd.kubernetes.protobuf"), None);
        assert_eq!(wanted("*/*"), Some(Wanted::JSON));
    }
}
