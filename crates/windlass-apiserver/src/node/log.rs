//! `GET …/pods/<name>/log`: fetched from the node and passed on as it comes.

use futures::StreamExt;
use http::StatusCode;
use http_body_util::BodyExt;

use super::{address_of, client, container_of, encode};
use crate::http::{Answer, Body, BodyError};
use crate::status::{ApiError, Result, Subject, field};
use crate::verbs::{Call, parse_int};

/// Query parameters of a log request that the node understands.
const PARAMETERS: &[&str] = &[
    "follow",
    "previous",
    "tailLines",
    "limitBytes",
    "sinceSeconds",
    "sinceTime",
    "timestamps",
];

/// Answers with a log.
pub(crate) async fn logs(call: &Call<'_>) -> Result<Answer> {
    check(call)?;
    let pod = call.find()?.value();
    let container = container_of(&pod, call)?;
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        // Nothing has run yet, so nothing was logged.
        return Ok(Answer::empty(StatusCode::NO_CONTENT));
    }
    let address = address_of(call, node)?;
    let client = client(call, node)?;
    let namespace = call.request.namespace.as_deref().unwrap_or_default();
    let parameters: Vec<String> = PARAMETERS
        .iter()
        .filter_map(|name| Some(format!("{name}={}", encode(call.query.get(name)?))))
        .collect();
    let path = format!(
        "/containerLogs/{namespace}/{}/{container}?{}",
        call.name(),
        parameters.join("&")
    );
    let unreachable = |error: String| {
        ApiError::without_reason(format!(
            "Get \"https://{}:{}{}\": {error}",
            address.host,
            address.port,
            path.strip_suffix('?').unwrap_or(&path)
        ))
    };
    let response = client
        .send(&address, &path, &[])
        .await
        .map_err(unreachable)?;
    if !response.status().is_success() {
        let code = response.status();
        let said = response
            .into_body()
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        return Err(ApiError::new(
            code,
            if code == StatusCode::NOT_FOUND {
                "NotFound"
            } else {
                "BadRequest"
            },
            said,
        ));
    }
    let chunks = response
        .into_body()
        .into_data_stream()
        .map(|chunk| chunk.map_err(|error| BodyError(error.to_string())));
    Ok(Answer::stream("text/plain", Body::stream(chunks)))
}

/// Refuses what makes no sense, before anybody is asked.
fn check(call: &Call<'_>) -> Result<()> {
    let number = |name: &str| call.query.get(name).map(parse_int).transpose();
    let mut causes = Vec::new();
    let tail = number("tailLines")?;
    let limit = number("limitBytes")?;
    let seconds = number("sinceSeconds")?;
    let invalid = |name: &str, value: i64, why: &str| field::invalid(name, &value.into(), why);
    if let Some(tail) = tail.filter(|tail| *tail < 0) {
        causes.push(invalid(
            "tailLines",
            tail,
            "must be greater than or equal to 0",
        ));
    }
    if let Some(limit) = limit.filter(|limit| *limit < 1) {
        causes.push(invalid("limitBytes", limit, "must be greater than 0"));
    }
    if seconds.is_some() && call.query.get("sinceTime").is_some() {
        let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        causes.push(field::forbidden("[]", why));
    } else if let Some(seconds) = seconds.filter(|seconds| *seconds < 1) {
        causes.push(invalid("sinceSeconds", seconds, "must be greater than 0"));
    }
    if causes.is_empty() {
        return Ok(());
    }
    let subject = Subject {
        group: "",
        kind: "PodLogOptions",
    };
    Err(ApiError::invalid(subject, call.name(), &causes))
}
