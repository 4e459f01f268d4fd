//! Bodies in protobuf, as client-go's typed clients send them, read into the JSON that the same
//! client would have sent in JSON.
//!
//! A body is four bytes that say what it is, and an envelope that names the kind and holds the
//! message. What a message means is told by a table (`facts/protobuf.json`), not by code per kind:
//! `wire` reads bytes, `message` gives fields their values, `json` writes them as Go would. Answers
//! are always JSON, which those clients accept beside protobuf.

mod facts;
mod json;
mod message;
mod wire;

use serde_json::{Value, json};

use self::facts::Message;
use self::json::Writer;
use self::message::{Parsed, Slot};
use self::wire::WireError;
use crate::http::Expected;

/// How every body begins.
const MAGIC: &[u8] = b"k8s\0";
const ENVELOPE: &str = "io.k8s.apimachinery.pkg.runtime.Unknown";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Why a body could not be read.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Kind and version the body is of, when it came so far as to tell.
    pub(crate) claimed: Option<(String, String)>,
    pub(crate) why: String,
}

impl Failure {
    fn early(why: impl Into<String>) -> Self {
        Self {
            claimed: None,
            why: why.into(),
        }
    }
}

/// Reads a body. One of a kind that is not known comes back with nothing but its kind.
pub(crate) fn decode(body: &[u8], expected: &Expected<'_>) -> Result<Value, Failure> {
    if body.is_empty() {
        return Err(Failure::early("empty data"));
    }
    let envelope = body.strip_prefix(MAGIC).ok_or_else(|| {
        Failure::early(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        )
    })?;
    if envelope.is_empty() {
        return Err(Failure::early("empty body"));
    }
    let envelope = Envelope::read(envelope).map_err(|error| Failure::early(error.to_string()))?;
    let (group, version, kind) = envelope.kind(expected);
    let (of_type, api_version) = if kind == "DeleteOptions" {
        (facts::get().named(DELETE_OPTIONS), "v1".to_owned())
    } else {
        let api_version = if group.is_empty() {
            version.clone()
        } else {
            format!("{group}/{version}")
        };
        (facts::get().of_kind(&group, &version, &kind), api_version)
    };
    let mut object = json!({});
    if let Some(message) = of_type.and_then(|id| facts::get().message(id)) {
        object = read(message, envelope.raw).map_err(|error| Failure {
            claimed: Some((kind.clone(), version.clone())),
            why: error.to_string(),
        })?;
    }
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// Reads one message as JSON.
fn read(message: &'static Message, data: &[u8]) -> Result<Value, WireError> {
    let parsed = Parsed::read(message, data)?;
    let value = Writer::default().message(&parsed)?;
    if crate::json::depth(&value, &mut 0) > crate::json::MAX_DEPTH {
        return Err(WireError::TooDeep);
    }
    Ok(value)
}

/// The kind of what was sent, and its bytes.
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(data: &'a [u8]) -> Result<Self, WireError> {
        let missing = || WireError::Meaning("the envelope's type is not known".to_owned());
        let message = facts::get().named(ENVELOPE);
        let message = message.and_then(|id| facts::get().message(id));
        let parsed = Parsed::read(message.ok_or_else(missing)?, data)?;
        let slot = |number| {
            let (place, _) = parsed.message.field(number)?;
            parsed.slot(place)
        };
        let (mut api_version, mut kind) = (String::new(), String::new());
        if let Some(Slot::Message(meta)) = slot(1) {
            let text = |number| match meta.message.field(number) {
                Some((place, _)) => match meta.slot(place) {
                    Some(Slot::Plain(Value::String(text))) => text.clone(),
                    _ => String::new(),
                },
                None => String::new(),
            };
            (api_version, kind) = (text(1), text(2));
        }
        let raw = match slot(2) {
            Some(Slot::Bytes(raw)) => raw,
            _ => &[][..],
        };
        Ok(Self {
            api_version,
            kind,
            raw,
        })
    }

    /// Group, version and kind; what is not said is what is expected.
    fn kind(&self, expected: &Expected<'_>) -> (String, String, String) {
        let (group, version) = match self.api_version.split('/').collect::<Vec<_>>().as_slice() {
            [version] => ("", *version),
            [group, version] => (*group, *version),
            _ => ("", ""),
        };
        let (group, version) = if version.is_empty() {
            (expected.group, expected.version)
        } else {
            (group, version)
        };
        let kind = if self.kind.is_empty() {
            expected.kind
        } else {
            &self.kind
        };
        (group.to_owned(), version.to_owned(), kind.to_owned())
    }
}

#[cfg(test)]
mod tests;
