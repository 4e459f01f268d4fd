//! One call of a webhook, from its configuration to the JSON it answered.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::address::{self, AddressError};
use super::configuration::ClientConfig;
use super::transport::{Reply, TransportError, WebhookCall};
use crate::server::ApiServer;

/// How Go shows the type that every object is first read as.
const TYPE_META: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
/// How much of an unexpected answer is repeated.
const TOLD: usize = 2048;

/// Why a call has no answer, in the words of Kubernetes' client.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// It was not sent, or not answered.
    #[error("Post \"{url}\": {why}")]
    Post { url: String, why: PostError },
    /// It was answered with a status that is no success.
    #[error("{0}")]
    Refused(String),
    #[error("0-length response with status code: {code} and content type: {content_type}")]
    Empty { code: u16, content_type: String },
    #[error("couldn't get version/kind; json parse error: {0}")]
    Unreadable(String),
}

#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error("invalid URL")]
    Url,
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("context deadline exceeded")]
    Timeout,
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// Posts a review.
pub(super) async fn post(
    server: &ApiServer,
    client: &ClientConfig,
    timeout: Duration,
    review: &Value,
) -> Result<Value, CallError> {
    let query = format!("?timeout={}s", timeout.as_secs());
    let shown = format!("{}{query}", client.target.url());
    let failed = |why: PostError| CallError::Post {
        url: shown.clone(),
        why,
    };
    let parts = client.target.parts();
    let (server_name, _, path) = parts.ok_or_else(|| failed(PostError::Url))?;
    let address = address::resolve(server, client).map_err(|why| failed(why.into()))?;
    let call = WebhookCall {
        target: client.target.clone(),
        address,
        server_name,
        path_and_query: format!("{}{query}", clean(&path)),
        ca_bundle: client.ca_bundle.clone(),
        body: Bytes::from(review.to_string()),
    };
    let sent = server.webhooks().post(&call);
    let reply = tokio::time::timeout(timeout, sent)
        .await
        .map_err(|_| failed(PostError::Timeout))?;
    read(&reply.map_err(|why| failed(why.into()))?)
}

/// A path as Go joins it: no empty parts, no dots, no slash at the end.
fn clean(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

fn read(reply: &Reply) -> Result<Value, CallError> {
    if !reply.code.is_success() {
        return Err(CallError::Refused(refusal(reply)));
    }
    if reply.body.is_empty() {
        return Err(CallError::Empty {
            code: reply.code.as_u16(),
            content_type: reply.content_type.clone(),
        });
    }
    // What is no JSON is read as YAML.
    let answer: Value = match serde_json::from_slice(&reply.body) {
        Ok(answer) => answer,
        Err(error) => serde_saphyr::from_slice(&reply.body)
            .map_err(|_| CallError::Unreadable(crate::json::go_error(&error, &reply.body)))?,
    };
    let found = match &answer {
        Value::Object(_) => return Ok(answer),
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    };
    Err(CallError::Unreadable(format!(
        "json: cannot unmarshal {found} into Go value of type {TYPE_META}"
    )))
}

/// What Kubernetes' client makes of an HTTP status that is no success.
fn refusal(reply: &Reply) -> String {
    let body = String::from_utf8_lossy(&reply.body);
    let body = body.trim();
    let unknown = || {
        let told: String = body.chars().take(TOLD).collect();
        // Only plain text is repeated.
        if told.is_empty() || !reply.content_type.starts_with("text/") {
            "unknown".to_owned()
        } else {
            told
        }
    };
    if let Ok(status) = serde_json::from_slice::<Value>(&reply.body)
        && status["kind"] == "Status"
        && let Some(message) = status["message"].as_str()
    {
        return message.to_owned();
    }
    match reply.code {
        StatusCode::BAD_REQUEST => {
            "the server rejected our request for an unknown reason".to_owned()
        }
        StatusCode::UNAUTHORIZED => {
            "the server has asked for the client to provide credentials".to_owned()
        }
        StatusCode::FORBIDDEN => body.to_owned(),
        StatusCode::NOT_FOUND => "the server could not find the requested resource".to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => {
            "the server does not allow this method on the requested resource".to_owned()
        }
        StatusCode::SERVICE_UNAVAILABLE => {
            "the server is currently unable to handle the request".to_owned()
        }
        StatusCode::GATEWAY_TIMEOUT => {
            "the server was unable to return a response in the time allotted, but may still be processing the request".to_owned()
        }
        code if code.is_server_error() => format!(
            "an error on the server (\"{}\") has prevented the request from succeeding",
            unknown().escape_debug()
        ),
        code => format!(
            "the server responded with the status code {} but did not return more information",
            code.as_u16()
        ),
    }
}

/// The version of reviews that a webhook is sent: the first it names that is known here.
pub(super) fn review_version(wanted: &[String]) -> Option<&'static str> {
    let known = |version: &String| ["v1", "v1beta1"].into_iter().find(|known| known == version);
    wanted.iter().find_map(known)
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn path_of_a_webhook_is_cleaned_as_go_does() {
        assert_eq!(clean("//refuse"), "/refuse");
        assert_eq!(clean("/a//b/./c/../d/"), "/a/b/d");
        assert_eq!(clean(""), "/");
    }
}
