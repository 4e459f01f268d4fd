//! Which form of an answer the client wants, and which form its body has.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::Value;

use crate::status::{ApiError, Result};

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

    /// The first form in the header that can be given; protobuf cannot, and clients name JSON behind it.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self> {
        let Some(accept) = headers
            .get(ACCEPT)
            .and_then(|accept| accept.to_str().ok())
            .filter(|text| !text.is_empty())
        else {
            return Ok(Self::JSON);
        };
        accept.split(',').find_map(Self::one).ok_or_else(|| {
            ApiError::new(
                http::StatusCode::NOT_ACCEPTABLE,
                "NotAcceptable",
                "only the following media types are accepted: application/json, application/yaml",
            )
        })
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

/// Reads a body that holds one object, as JSON or YAML.
pub(crate) fn decode_object(headers: &HeaderMap, body: &[u8]) -> Result<Value> {
    match media_type(headers) {
        "" | "application/json" => decode_json(body),
        "application/yaml" => decode_yaml(body),
        _ => Err(ApiError::unsupported_media_type(&[
            "application/json",
            "application/yaml",
        ])),
    }
}

fn decode_json(body: &[u8]) -> Result<Value> {
    serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!(
            "couldn't get version/kind; json parse error: {error}"
        ))
    })
}

pub(crate) fn decode_yaml(body: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(body)
        .map_err(|error| ApiError::bad_request(format!("the body is not UTF-8: {error}")))?;
    serde_saphyr::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(accept: &str) -> Option<Wanted> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        Wanted::from_headers(&headers).ok()
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
